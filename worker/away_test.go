package worker

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
)

// A distant world has its worker and its server behind one line to Redis.
type distant struct {
	*world
	line *redistest.Proxy
	id   int64
}

// Redis is away for the worker and for the server: nothing is lost, one result counts for the
// round, and it took as long as the program did.
func TestRedisIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		run  bool // when Redis is back the program still runs
		long bool // it is away for longer than the lease
	}{
		"during a run":                      {true, false},
		"during a report":                   {false, false},
		"during a run, longer than a lease": {true, true},
		"during a report, and longer":       {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDistant(t)
			begin, goOn := w.pipe(), w.pipe()
			w.script("p", "#!/bin/sh\necho $$ >pid; exec 3>\"$1\"; echo begun >&3; read line <\"$2\"; echo done\n")
			began := time.Now()
			w.id = w.open(begin.path + " " + goOn.path)
			begin.begun()
			w.goAway()
			end := func() {
				goOn.release()
				w.waitedFor()
			}
			if !c.run {
				end()
			}
			took := time.Since(began)
			if c.long {
				w.outlastLease()
			}
			w.line.Resume()
			if c.run {
				end()
				took = time.Since(began)
			}
			w.wellDone(took)
		})
	}
}

// The line is cut when a claim was sent, or its answer was: the task is run, once.
func TestRedisIsAwayDuringAClaim(t *testing.T) {
	w := newDistant(t)
	w.script("p", "#!/bin/sh\necho done\n")
	w.line.Hang()
	eventually(t, "a call on its way", func() bool { return w.line.Held() > 0 })
	w.id = w.open("")
	w.goAway()
	w.line.Resume()
	w.wellDone(patience)
}

// newDistant has a worker and a server at work.
func newDistant(t *testing.T) *distant {
	w := &distant{world: newWorld(t), line: redistest.NewProxy(t, redistest.Shared(t))}
	w.cfg.Lease = 300 * time.Millisecond
	w.cfg.SleepAfterNoProcessClaimed = 20 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	wait := w.until(ctx, w.workerOn(w.connect(w.line.Addr)))
	served := w.serve(ctx, w.connect(w.line.Addr))
	t.Cleanup(func() {
		stop()
		wait()
		served()
	})
	eventually(t, "the start", func() bool { return w.workerState() == stateWorking && w.served() })
	return w
}

func (w *world) serve(ctx context.Context, store *redisstate.Store) (wait func()) {
	w.Helper()
	cfg, err := config.DefaultServer(w.cfg.Namespace)
	must(w, err)
	cfg.RoundDuration, cfg.OutageGrace = 50*time.Millisecond, 10*time.Second
	done := make(chan error, 1)
	go func() { done <- server.New("s1", cfg, store, w.logger()).Run(ctx) }()
	return func() { must(w, receive(w, "the server's end", done)) }
}

func (w *distant) served() bool {
	last, err := w.store.LastServer(w.Context())
	must(w, err)
	return last > 0
}

// goAway returns when both the worker and the server have noticed.
func (w *distant) goAway() {
	w.Helper()
	w.line.Refuse()
	w.line.Cut()
	eventually(w, "both notice", func() bool { return w.log.Count("redis cannot be used") >= 2 })
}

// waitedFor returns when the worker knows that the program has ended.
func (w *distant) waitedFor() {
	w.Helper()
	pid, err := os.ReadFile(w.path("p/pid"))
	must(w, err)
	eventually(w, "the program's end", func() bool {
		_, err := os.Lstat("/proc/" + strings.TrimSpace(string(pid)))
		return os.IsNotExist(err)
	})
}

func (w *distant) outlastLease() {
	w.Helper()
	eventually(w, "the end of the lease", func() bool {
		now, err := w.store.Now(w.Context())
		must(w, err)
		return now > w.task(w.id).LeaseUntil.Add(tdf.For(w.cfg.Lease))
	})
}

func (w *distant) wellDone(took time.Duration) {
	w.Helper()
	eventually(w, "the end", func() bool { return w.task(w.id).State.Judged() })
	task := w.task(w.id)
	r := task.Current()
	if task.State != tdf.Succeeded || r.Output != "done\n" || task.Losses+task.Round != 0 {
		w.Errorf("it is %s: %+v", task.State, task)
	}
	if n := strings.Count(task.Log, ": executed"); n != 1 {
		w.Errorf("executed %d times: %s", n, task.Log)
	}
	if ran := r.Entered[tdf.Executed].Sub(r.Entered[tdf.Running]); r.Seconds <= 0 || r.Seconds > tdf.For(took) || ran > tdf.For(took) {
		w.Errorf("it took %v s by itself, %v s by Redis; here %v", r.Seconds, ran, took)
	}
	if findings, err := w.store.Check(w.Context()); err != nil || len(findings) > 0 {
		w.Errorf("%v, %v", findings, err)
	}
}
