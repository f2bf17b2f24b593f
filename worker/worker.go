package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker/process"
)

// Store is what a worker needs of Redis. Its calls wait by themselves while Redis is away.
type Store interface {
	reporter
	registry
	successes
	Claim(ctx context.Context, r redisstate.ClaimRequest) (redisstate.Claimed, error)
	Renew(ctx context.Context, lease tdf.Seconds, renewals ...redisstate.Renewal) (redisstate.Renewed, error)
	ReadOne(ctx context.Context, id int64, want redisstate.Want) (redisstate.Stored, error)
	Program(ctx context.Context, sha256 string) ([]byte, error)
	WakeWorker() *redisstate.Waker
}

// A Worker runs the tasks of one namespace, as many at once as it has slots.
type Worker struct {
	// Version of the release, for those who look at the workers; set before Run.
	Version string

	// Runner runs the rounds; set before Run. nil: their programs are fetched, and run as
	// docs/programs.md says. Run then makes this process non-dumpable, for as long as it lives: programs must not
	// read its memory (docs/programs.md, "The worker's own password").
	Runner Runner

	// Sole says that this process is nothing but the worker: whatever it finds itself the
	// parent of that it does not know was started by a program, and is ended. Set before Run.
	Sole bool

	name    string
	host    string
	cfg     config.Worker // its Directory is absolute
	store   Store
	log     *slog.Logger
	avoid   avoidance
	drain   drain
	haste   context.Context // ends when there is no more time for grace
	stopNow context.CancelFunc
	after   func(time.Duration) <-chan time.Time
	answer  time.Duration // answerBound; longer in tests, which may run on a slow machine

	endLeftovers func(ctx context.Context, prefix string, log *slog.Logger) (ended int) // process.Sweep
}

// New returns a worker; no other one of the namespace may have its name while it lives. An error
// is about the name (see [CheckName]), or a *[config.Error] about a file name, the directory or collect.
func New(name string, cfg config.Worker, store Store, log *slog.Logger) (*Worker, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := checkFilenames(cfg); err != nil {
		return nil, err
	}
	if cfg.Collect != "" {
		if err := fetch.ParseTarget(cfg.Collect); err != nil {
			return nil, wrongKey("collect", err.Error(), err)
		}
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
	w := &Worker{
		name: name, host: host, cfg: cfg, store: store, log: log, drain: newDrain(),
		after: time.After, answer: answerBound, endLeftovers: process.Sweep,
	}
	w.avoid = newAvoidance(cfg.MaxFailuresInRow, log)
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
		return "", wrongKey("directory", err.Error()+"; expected a directory that is there", err)
	}
	return abs, nil
}

func wrongKey(key, problem string, err error) error {
	return &config.Error{Source: "configuration", Section: "worker", Key: key, Problem: problem, Err: err}
}

// slots is how many programs run at once.
func (w *Worker) slots() int {
	if w.cfg.Concurrency == 0 {
		return runtime.NumCPU()
	}
	return w.cfg.Concurrency
}

// Run claims tasks and runs them until ctx ends. Then it claims nothing more, lets the programs
// that run finish for up to grace, gives their tasks back if that was not enough, and returns
// (docs/operations.md, "Stopping a worker"). Nothing that Redis does while it is away ends it.
// A *[redisstate.NameTakenError] says that the name belongs, or belongs now, to another worker;
// a *[config.Error] that a program cannot be run here in the way that the configuration says.
func (w *Worker) Run(ctx context.Context) error {
	dismantle, err := w.setUp()
	if err != nil {
		return w.unlessTold(ctx, err)
	}
	defer dismantle()
	if err := w.register(ctx); err != nil {
		return w.unlessTold(ctx, err)
	}
	s, closeSession := w.open(ctx)
	signOff := s.announce()
	s.loops.Go(func() { s.upkeep(s.looping) })
	s.claimAll()
	closeSession()
	return signOff()
}

func (w *Worker) unlessTold(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// RunOnce claims a task, and if there is one runs it and reports it, as Run does. It does not take the
// worker's name, and clears up after nobody: it is for trying things out.
func (w *Worker) RunOnce(ctx context.Context) (ran bool, err error) {
	dismantle, err := w.setUp()
	if err != nil {
		return false, err
	}
	defer dismantle()
	s, closeSession := w.open(ctx)
	_, c, err := s.claim(1, false)
	closeSession()
	return len(c.Claims) > 0, err
}
