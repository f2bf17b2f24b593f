package worker

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/redisstate"
)

var (
	eventually = expect.Eventually
	must       = expect.NoError
)

// handMade is the source of tasks whose programs a test makes by hand, without a fetch.
const handMade = "rsync:/nowhere/run.sh"

// testLease is so long that no lease runs out in a test. The worker's timers for heartbeats and renewals are then longer than
// all others, and [clock.beat] makes them expire.
const testLease = 300 * time.Hour

// A world is a namespace, a server, and the configuration of a worker.
type world struct {
	*testing.T
	store *redisstate.Store
	cfg   config.Worker
	log   testlog.Buffer

	timers clock // of its workers

	direct *redis.Client // made by client
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, timers: clock{real: time.After}}
	ns := redistest.Namespace(t)
	cfg := expect.Result(config.DefaultWorker(ns)).Value(t)
	cfg.Directory, cfg.Lease = t.TempDir(), testLease
	w.cfg = cfg
	w.store = w.connect(redistest.Shared(t))
	return w
}

// keepOutputs sets the names of the output files, so that the worker keeps the files of every round.
func (w *world) keepOutputs() { w.cfg.OutputFilenameSet, w.cfg.ErrorFilenameSet = true, true }

func (w *world) connect(addr string) *redisstate.Store {
	w.Helper()
	host, digits, _ := strings.Cut(addr, ":")
	port := expect.Result(strconv.Atoi(digits)).Value(w)
	cfg := config.Redis{Host: host, Port: port}
	store := expect.Result(redisstate.Connect(w.Context(), cfg, w.cfg.Namespace, w.logger())).Value(w)
	w.Cleanup(func() { store.Close() })
	return store
}

func (w *world) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// ofStore returns what workers need of the store.
func (w *world) ofStore() broker.DirectStore { return broker.WholeOf(w.store) }

func (w *world) worker(with ...Option) *Worker { return w.workerOn(w.ofStore(), with...) }

func (w *world) workerOn(store broker.DirectStore, with ...Option) *Worker {
	w.Helper()
	with = append(with, withStore(store), WithLog(w.logger()), WithTimers(w.timers.after))
	return expect.Result(New("w1", w.cfg, with...)).Value(w)
}

// withStore makes a worker that uses s, and that may run programs.
func withStore(s broker.DirectStore) Option {
	return func(o *options) { o.store, o.archives = s, archive.Compressions() }
}

// script makes a program in the working directory.
func (w *world) script(program, text string) {
	w.Helper()
	must(w, os.MkdirAll(w.path(program), 0o755))
	must(w, os.WriteFile(w.path(program, "run.sh"), []byte(text), 0o755))
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.cfg.Directory}, parts...)...)
}

// open opens a task of the program p.
func (w *world) open(input string, change ...func(*task.Properties)) int64 {
	w.Helper()
	d := task.Defaults("p", handMade, input)
	for _, c := range change {
		c(&d)
	}
	ids := expect.Result(w.store.Open(w.Context(), "test", d)).Value(w)
	return ids[0]
}

// lastChance sets the number of a task's unfit releases to the limit, so that the next round fails instead of being
// released.
func (w *world) lastChance(id int64) int64 {
	w.Helper()
	must(w, w.client().HSet(w.Context(), w.store.Keys.Task(id), "unfit", 3).Err())
	return id
}

// withoutProgram gives a task the source of a program that is not stored.
func (w *world) withoutProgram(id int64) int64 {
	w.Helper()
	must(w, w.client().HSet(w.Context(), w.store.Keys.Task(id), "source", "redis:"+strings.Repeat("0", 64)).Err())
	return id
}

// client returns a Redis client, for operations that the store does not have.
func (w *world) client() *redis.Client {
	if w.direct == nil {
		w.direct = redistest.Client(w, redis.Options{Addr: redistest.Shared(w)})
	}
	return w.direct
}

func (w *world) task(id int64) *task.Task {
	w.Helper()
	stored := expect.Result(w.store.ReadOne(context.Background(), id, redisstate.Want{Fields: redisstate.Whole})).Value(w)
	return stored.Task
}

func (w *world) runOnce(worker *Worker) {
	w.Helper()
	ran := expect.Result(worker.RunOnce(w.Context())).Value(w)
	expect.MustTrue(w, ran, "ran", ran)
}

func (w *world) newServer() *server.Server {
	w.Helper()
	cfg := expect.Result(config.DefaultServer(w.cfg.Namespace)).Value(w)
	return server.New("s1", cfg, w.store, w.logger())
}

// finished returns the task when it is finished. Until then, it runs a server.
func (w *world) finished(id int64) *task.Task {
	w.Helper()
	s := w.newServer()
	eventually(w, "the task's end", func() bool {
		expect.Result(s.RunOnce(w.Context())).OK(w)
		return w.task(id).State.Settled()
	})
	return w.task(id)
}

// dirOf returns the directory of a round.
func dirOf(r *Round) string {
	dir, err := r.Dir()
	if err != nil {
		panic(err)
	}
	return dir
}

// supervisor starts the supervisor of a worker. The test itself calls claimNow and renew.
func (w *world) supervisor(worker *Worker) (s *supervisor, end func()) {
	w.Helper()
	closeHost := expect.Result(worker.prepareHost()).Value(w)
	s, stop := worker.supervise(w.Context())
	s.startLoops(true)
	return s, func() {
		stop()
		closeHost()
	}
}

// supervisorOf returns the supervisor of a worker that does not run.
func supervisorOf(w *Worker) *supervisor { return &supervisor{Worker: w} }

// background runs the worker once, in the background. wait waits for the end.
func (w *world) background(ctx context.Context, worker *Worker) (wait func()) {
	done := make(chan error, 1)
	go func() {
		_, err := worker.RunOnce(ctx)
		done <- err
	}()
	return func() {
		w.Helper()
		must(w, <-done)
	}
}

// A pipe shows a test that a program has begun, and that all of its processes have ended.
type pipe struct {
	*world
	path string
	file *os.File
}

func (w *world) pipe() *pipe {
	w.Helper()
	path := filepath.Join(w.TempDir(), "pipe")
	must(w, syscall.Mkfifo(path, 0o600))
	return &pipe{world: w, path: path}
}

// begun returns when the program has begun: it waits for a line from the program.
func (p *pipe) begun() {
	p.Helper()
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.Open(p.path) // opening the pipe waits until the program opens it, too
		opened <- f
	}()
	p.file = <-opened
	p.Cleanup(func() { p.file.Close() })
	expect.Result(p.file.Read(make([]byte, 100))).OK(p)
}

// ended returns when the program has ended: it waits until no process has the pipe open.
func (p *pipe) ended() {
	p.Helper()
	expect.Result(io.Copy(io.Discard, p.file)).OK(p)
}

// release lets a program that reads from the pipe continue. It first waits until the program reads. To notice that,
// this process must not read from the pipe itself.
func (p *pipe) release() {
	p.Helper()
	if p.file != nil {
		p.file.Close()
	}
	opened := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(p.path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		opened <- err
	}()
	must(p, <-opened)
}

// A clock replaces a worker's timers. Until the test holds them, those of up to an hour expire by themselves.
type clock struct {
	mu     sync.Mutex
	held   bool
	timers []timer
	real   func(time.Duration) <-chan time.Time
}

type timer struct {
	d time.Duration
	c chan time.Time
}

func (c *clock) after(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held && d <= time.Hour || d > 0 && d <= claimGap {
		return c.real(d)
	}
	t := timer{d, make(chan time.Time, 1)}
	c.timers = append(c.timers, t)
	return t.c
}

// hold makes only the test let timers expire, apart from the short ones between claims.
func (c *clock) hold() *clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = true
	return c
}

// beat makes the timers of heartbeats and renewals expire until ok returns true.
func (c *clock) beat(t testing.TB, state string, ok func() bool) {
	t.Helper()
	eventually(t, state, func() bool {
		c.mu.Lock()
		c.timers = slices.DeleteFunc(c.timers, func(t timer) bool {
			due := t.d > testLease/6 && t.d <= testLease/3
			if due {
				t.c <- time.Now()
			}
			return due
		})
		c.mu.Unlock()
		return ok()
	})
}

// fire waits for a timer of d and makes it expire.
func (c *clock) fire(t testing.TB, d time.Duration) {
	t.Helper()
	c.fireBetween(t, d, d)
}

// expire makes all present timers of d expire.
func (c *clock) expire(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = slices.DeleteFunc(c.timers, func(t timer) bool {
		if t.d == d {
			t.c <- time.Now()
		}
		return t.d == d
	})
}

// waitedFor waits until the worker has a timer of d.
func (c *clock) waitedFor(t testing.TB, d time.Duration) {
	t.Helper()
	c.waitedBetween(t, d, d)
}

func (c *clock) waitedBetween(t testing.TB, least, d time.Duration) {
	t.Helper()
	eventually(t, "a timer of "+d.String(), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.timers, func(t timer) bool { return t.d >= least && t.d <= d })
	})
}

func (c *clock) fireBetween(t testing.TB, least, d time.Duration) {
	t.Helper()
	eventually(t, "a timer of "+d.String(), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, timer := range c.timers {
			if timer.d <= d && timer.d >= least {
				timer.c <- time.Now()
				c.timers = append(c.timers[:i], c.timers[i+1:]...)
				return true
			}
		}
		return false
	})
}

func (w *world) logged(text string) {
	w.Helper()
	expect.Contains(w, w.log.String(), text, "not in the log")
}
