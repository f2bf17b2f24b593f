package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/redisstate"
)

// Store is what a worker needs of Redis. Its calls wait by themselves while Redis is away.
type Store interface {
	reporter
	Claim(ctx context.Context, r redisstate.ClaimRequest) (redisstate.Claimed, error)
	Renew(ctx context.Context, lease tdf.Seconds, renewals ...redisstate.Renewal) (tdf.Time, []error, error)
	Program(ctx context.Context, sha256 string) ([]byte, error)
	SeenWorker(ctx context.Context, w redisstate.WorkerInfo) error
	NumberWorker(ctx context.Context, name string) error
	WakeWorker() *redisstate.Waker
}

// A Worker runs the tasks of one namespace, one at a time.
type Worker struct {
	Version string // of the release, for those who look at the workers; set before Run

	name    string
	host    string
	cfg     config.Worker // its Directory is absolute
	store   Store
	log     *slog.Logger
	fetcher *fetch.Fetcher
	haste   context.Context // ends when there is no more time for grace
	stopNow context.CancelFunc
	after   func(time.Duration) <-chan time.Time
}

// New returns a worker; no other one of the namespace may have its name while it lives. An error
// is about the name (see [CheckName]), or a *[config.Error] about the file names or the directory.
func New(name string, cfg config.Worker, store Store, log *slog.Logger) (*Worker, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := checkFilenames(cfg); err != nil {
		return nil, err
	}
	var err error
	if cfg.Directory, err = workingDirectory(cfg.Directory); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("the name of this host: %w", err)
	}
	closeOnExec()
	w := &Worker{name: name, host: host, cfg: cfg, store: store, log: log, after: time.After}
	w.fetcher = w.newFetcher()
	w.haste, w.stopNow = context.WithCancel(context.Background())
	return w, nil
}

// workingDirectory makes the path independent of where the process is.
func workingDirectory(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "open", Path: abs, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return "", &config.Error{
			Source: "configuration", Section: "worker", Key: "directory",
			Problem: err.Error() + "; expected a directory that is there", Err: err,
		}
	}
	return abs, nil
}

// Run claims tasks and runs them until ctx ends. Then it claims nothing more, lets the program that
// runs finish for up to grace, gives its task back if that was not enough, and returns
// (docs/operations.md, "Stopping a worker"). Nothing that Redis does while it is away ends it.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.register(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	signOff := w.announce(ctx)
	defer signOff()
	waker := w.store.WakeWorker()
	defer waker.Close()
	for ctx.Err() == nil {
		claimed, well, err := w.round(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			w.log.Error("claiming failed, trying again", "error", err)
			w.sleep(ctx, max(w.cfg.SleepAfterNoProcessClaimed, errorPause))
		case err != nil:
		case len(claimed.Claims) == 0:
			waker.Wait(ctx, w.idle(claimed))
		case well:
			w.sleep(ctx, w.cfg.SleepAfterSuccess)
		default:
			w.sleep(ctx, w.cfg.SleepAfterFailure)
		}
	}
	return nil
}

// RunOnce claims a task, and if there is one runs it and reports it, as Run does.
func (w *Worker) RunOnce(ctx context.Context) (ran bool, err error) {
	claimed, _, err := w.round(ctx)
	return len(claimed.Claims) > 0, err
}

// round says whether what was claimed went well.
func (w *Worker) round(told context.Context) (claimed redisstate.Claimed, well bool, err error) {
	claimed, err = w.claim(told)
	received := time.Now()
	if err != nil {
		return claimed, false, err
	}
	for _, c := range claimed.Claims {
		w.log.Debug("claimed", "task", c.Task.ID, "round", c.Task.Round, "program", c.Task.Program)
		well = w.execute(told, c, claimed.Now, received)
	}
	return claimed, well, nil
}

// claim is not broken off at once when the worker is told to stop: a task that was handed out
// in an answer that nobody reads would count as lost.
func (w *Worker) claim(told context.Context) (redisstate.Claimed, error) {
	ctx, end := w.outlive(told, answerBound, answerBound)
	defer end(nil)
	return w.store.Claim(ctx, redisstate.ClaimRequest{Worker: w.name, Most: 1, Lease: tdf.For(w.cfg.Lease)})
}
