package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/broker/remote"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/process"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A Worker runs the tasks of a namespace, as many at once as it has slots. If the configuration has several namespaces,
// [New] makes a Worker for each, and [Worker.Run] runs them all (docs/shards.md).
type Worker struct {
	options
	*shared

	name      string
	hostname  string
	cfg       config.Worker // of its namespace; its Directory is absolute
	log       *slog.Logger  // names the namespace if there are several; options.log does not
	part      string        // a part of paths that several namespaces share; "" if the configuration has one
	first     int           // how many slots the Workers before it have
	offer     class.Offer
	broker    protocol // nil while the worker is not connected
	unstarted unstarted
	news      signal // wakes the loop of heartbeats
	drain     drain
	shortages *shortages
	own       roundsLock

	whole class.Capacities // what the worker has when it runs nothing
	pool  *resources.Pool  // what the worker has free; nil if it offers no resources

	mostAtOnce int // how many rounds may run at once, if the worker offers resources

	preparer preparer  // nil unless the worker runs
	slotDirs *slotDirs // nil unless the worker runs programs in processes of their own
}

// shared is what the Workers of one process have together.
type shared struct {
	all         []*Worker     // one for each namespace of the configuration
	processes   *process.Host // nil unless they run programs in processes of their own
	programsEnd time.Time     // when programs must have ended; set if there is a time limit
	occupancy   occupancy

	noGrace  context.Context // done after StopNow
	endGrace context.CancelFunc

	after  func(time.Duration) <-chan time.Time
	answer time.Duration // answerBound, or longer in tests, because their machine may be slow

	leaveBound time.Duration // leaveBound, or longer in tests
	claimGap   time.Duration // claimGap, or longer in tests

	// process.Sweep, unless a test replaces it
	endLeftovers func(ctx context.Context, prefix string, log *slog.Logger) (ended int)
}

// Config is the configuration of a worker (docs/configuration.md). [DefaultConfig] and [LoadConfig] make one.
type Config = config.Worker

// DefaultConfig returns the configuration of a worker whose Redis is at localhost:6379. The error is a
// *[tdf.ConfigError]: the namespace is invalid.
func DefaultConfig(namespace string) (Config, error) { return config.DefaultWorker(namespace) }

// LoadConfig reads a configuration file, such as worker.cfg. Environment variables override the file. The error is a
// *[tdf.ConfigError].
func LoadConfig(file string) (Config, error) { return config.LoadWorker(file) }

// Load returns a worker with the configuration of a file (docs/configuration.md). Unless [WithLog] sets another log,
// the worker logs to stderr with the settings of section [log]. The errors are those of [New]; a *[tdf.ConfigError]
// also names the file.
func Load(name, file string, with ...Option) (*Worker, error) {
	cfg, err := config.LoadWorker(file)
	if err != nil {
		return nil, err
	}
	w, err := New(name, cfg, append([]Option{WithLog(cfg.Log.Logger(os.Stderr))}, with...)...)
	if wrong := new(config.Error); errors.As(err, &wrong) {
		wrong.Locate(file)
	}
	return w, err
}

// New returns a worker. It does not connect to Redis or the API: [Worker.Run] does. Each worker of a namespace has a
// name of its own ([CheckName]).
//
// An invalid configuration is a *[tdf.ConfigError]. New also returns an error if options exclude each other.
func New(name string, cfg Config, with ...Option) (*Worker, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := checkFilenames(cfg); err != nil {
		return nil, err
	}
	if err := checkTimeLimit(cfg); err != nil {
		return nil, err
	}
	o, err := newOptions(with)
	if err != nil {
		return nil, err
	}
	if cfg.API.URL != "" {
		boundTexts(&cfg)
	}
	if cfg.Directory, err = workingDirectory(cfg.Directory); err != nil {
		return nil, err
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the name of this host: %w", err)
	}
	all, err := newEach(name, hostname, cfg, o)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// boundTexts lowers the bounds of texts to those of the API.
func boundTexts(cfg *config.Worker) {
	if cfg.MaxOutput == 0 {
		cfg.MaxOutput = remote.MaxText
	}
	for _, most := range []*int64{&cfg.MaxOutput, &cfg.MaxCheckpoint, &cfg.MaxResult} {
		*most = min(*most, remote.MaxText)
	}
	cfg.MaxFetch = min(cfg.MaxFetch, broker.MaxFetch)
}

// workingDirectory returns dir as an absolute path. It returns an error if dir is not an existing directory.
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
		return "", wrongKey("directory", err.Error()+"; expected an existing directory", err)
	}
	return abs, nil
}

func wrongKey(key, problem string, err error) error {
	return &config.Error{Source: "configuration", Section: "worker", Key: key, Problem: problem, Err: err}
}

// slots returns how many rounds may run at once.
func (w *Worker) slots() int { return max(w.plainSlots(), w.mostAtOnce) }

// plainSlots returns how many rounds of tasks that ask for nothing may run at once.
func (w *Worker) plainSlots() int {
	if w.cfg.Concurrency == 0 {
		return resources.Cores()
	}
	return w.cfg.Concurrency
}

// Run connects to Redis or the API, and claims and runs tasks until ctx ends, the configured time limit is near, or the
// worker was idle for the configured time. Then it drains: it claims nothing more, waits up to the configured grace for
// the rounds that still run, and releases the rest (docs/operations.md, "Stopping a worker").
//
// Run waits while Redis or the API is away. It returns an error if
//   - Redis or the API refuses the worker, for example because of a wrong password,
//   - another worker has the name, or takes it while this worker runs,
//   - this host cannot run programs as the configuration asks: a *[tdf.ConfigError],
//   - a [Handler] or [Runner] still runs, although its context ended kill_grace ago, or one second ago if kill_grace is
//     shorter. Its task is released, and another worker may run it. The caller should end the process.
//
// If there are several namespaces, an error in one of them drains the others, and Run returns the first error.
//
// Unless rounds run in this process, Run changes this process for good:
//   - It makes the process non-dumpable, so that programs cannot read its memory (docs/programs.md, "The worker's own
//     password").
//   - It marks all open descriptors above 2 close-on-exec, so that programs do not inherit them.
func (w *Worker) Run(ctx context.Context) error {
	ctx, end := w.withTimeLimit(ctx)
	defer end()
	closeHost, err := w.prepareHost()
	if err != nil {
		return err
	}
	defer closeHost()
	return w.runAll(ctx, end)
}

// run connects the worker of one namespace, and runs it until it has drained. It calls started when it has the name.
func (w *Worker) run(ctx context.Context, started func()) error {
	defer started()
	disconnect, err := w.connect(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer disconnect()
	// before the first claim, because servers must know the longest lease of all workers
	drained, err := w.broker.TakeName(ctx, w.info(presence.WorkerStarting),
		broker.Takeover{Gone: isGone, Sleep: w.sleep, Log: w.log})
	if err != nil {
		return unlessStopped(ctx, err)
	}
	w.drain.obey(drained, w.log)
	s, closeSupervisor := w.supervise(ctx)
	stopHeartbeats := s.sendHeartbeats()
	if err = w.cleanUp(s.claiming); err == nil {
		close(s.begun)
		_, err = w.broker.WorkerHeartbeat(s.claiming, s.infoWithTasks())
	}
	if err != nil {
		closeSupervisor()
		return unlessStopped(ctx, cmp.Or(stopHeartbeats(), err))
	}
	w.log.Info("working", "directory", w.cfg.Directory, "slots", w.slots())
	s.startLoops(false)
	s.loops.Go(func() { s.upkeep(s.reporting) })
	started()
	<-s.noClaims
	closeSupervisor()
	return cmp.Or(stopHeartbeats(), s.leftError(), s.diskFullError())
}

// connect connects to Redis, unless the worker uses the API, or a test has given it a store.
func (w *Worker) connect(ctx context.Context) (disconnect func(), err error) {
	if w.store != nil {
		return w.broker.Close, nil // the broker serves the next run, too
	}
	closeBroker := func() {
		w.broker.Close()
		w.broker = nil
	}
	if w.cfg.API.URL != "" {
		r, err := remote.New(w.cfg.API, task.For(w.cfg.Lease), w.log, w.sleep)
		if err != nil {
			return nil, err
		}
		w.broker = r
		return closeBroker, nil
	}
	s, err := redisstate.Connect(ctx, w.cfg.Redis, w.cfg.Namespace, w.log)
	if err != nil {
		return nil, err
	}
	s.Counters.KeepCounts()
	w.broker = w.newBroker(broker.WholeOf(s))
	return func() {
		closeBroker()
		_ = s.Close() // best effort: all reports are sent
	}, nil
}

func (w *Worker) newBroker(s broker.DirectStore) protocol {
	d := broker.NewDirect(s, w.name, w.offer, task.For(w.cfg.Lease))
	if w.pool != nil {
		d.Free = w.pool.Free
	}
	return d
}

func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// RunOnce claims one task, runs it and reports it, as Run does. It returns whether there was a task. RunOnce neither
// takes the worker's name nor cleans up after an earlier worker, so it is only for tests and trials, and needs Redis.
func (w *Worker) RunOnce(ctx context.Context) (ran bool, err error) {
	if w.cfg.API.URL != "" {
		return false, errors.New("run one task: a worker over the API must have a name: use Run")
	}
	closeHost, err := w.prepareHost()
	if err != nil {
		return false, err
	}
	defer closeHost()
	for _, one := range w.all {
		if ran, err = one.runOnce(ctx); ran || err != nil {
			break
		}
	}
	return ran, err
}

func (w *Worker) runOnce(ctx context.Context) (ran bool, err error) {
	disconnect, err := w.connect(ctx)
	if err != nil {
		return false, err
	}
	defer disconnect()
	s, closeSupervisor := w.supervise(ctx)
	s.startLoops(true)
	claimed, err := s.claimNow(1)
	closeSupervisor()
	return claimed > 0, cmp.Or(err, s.leftError())
}
