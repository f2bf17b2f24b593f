package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
)

// A distant world is a world whose worker and server connect to Redis through lines, which tests can cut.
type distant struct {
	*world
	worker, server line
	id             int64
	reported       chan time.Time // when the worker first sent the result
}

// A line is a connection to Redis that tests can cut.
type line struct {
	*redistest.Proxy
	store *redisstate.Store
}

// The worker and the server cannot reach Redis for some time. The task is not lost, and its round has one result. The
// recorded time of the round is the run time of the program.
func TestRedisIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		run  bool // the program still runs when Redis is back
		long bool // Redis is away for longer than the lease
	}{
		"during a run":                         {true, false},
		"during a report":                      {false, false},
		"during a run, longer than a lease":    {true, true},
		"during a report, longer than a lease": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDistant(t)
			begin, goOn := w.pipe(), w.pipe()
			var took time.Duration
			w.script("p", "#!/bin/sh\nexec 3>\"$1\"; echo begun >&3; read line <\"$2\"; echo done\n")
			began := time.Now()
			w.id = w.open(begin.path + " " + goOn.path)
			begin.begun()
			w.goAway()
			end := func() {
				goOn.release()
				took = (<-w.reported).Sub(began)
			}
			if !c.run {
				end()
			}
			if c.long {
				w.loseLease(w.client(), w.id)
			}
			w.comeBack()
			if c.run {
				end()
			}
			w.wellDone(took)
		})
	}
}

// The connection is cut after the worker has sent a claim, or after Redis has sent the answer. The task runs once.
func TestRedisIsAwayDuringAClaim(t *testing.T) {
	w := newDistant(t)
	w.script("p", "#!/bin/sh\necho done\n")
	w.worker.Hang()
	w.server.Hang()
	eventually(t, "calls on their way", func() bool { return w.worker.Held() > 0 && w.server.Held() > 0 })
	w.id = w.open("")
	w.goAway()
	w.comeBack()
	w.wellDone(time.Hour)
}

// newDistant starts a worker and a server.
func newDistant(t *testing.T) *distant {
	w := &distant{world: newWorld(t), reported: make(chan time.Time, 1)}
	w.worker, w.server = w.line(), w.line()
	ctx, stop := context.WithCancel(t.Context())
	wait := w.until(ctx, w.workerOn(&watching{w.worker.store, func() {
		select {
		case w.reported <- time.Now():
		default:
		}
	}}))
	served := w.serve(ctx, w.server.store)
	t.Cleanup(func() {
		stop()
		wait()
		served()
	})
	eventually(t, "the start", func() bool { return w.workerState() == redisstate.WorkerWorking && w.served() })
	return w
}

func (w *world) line() line {
	w.Helper()
	proxy := redistest.NewProxy(w, redistest.Shared(w))
	return line{proxy, w.connect(proxy.Addr)}
}

func (w *world) serve(ctx context.Context, store *redisstate.Store) (wait func()) {
	w.Helper()
	cfg := expect.Result(config.DefaultServer(w.cfg.Namespace)).Value(w)
	cfg.OutageGrace = time.Hour
	done := make(chan error, 1)
	go func() { done <- server.New("s1", cfg, store, w.logger()).Run(ctx) }()
	return func() { must(w, <-done) }
}

func (w *distant) served() bool {
	last := expect.Result(w.store.LastServerHeartbeat(w.Context())).Value(w)
	return last > 0
}

// goAway cuts the connections, and returns when the worker and the server have noticed the cut.
func (w *distant) goAway() {
	w.Helper()
	for _, l := range []line{w.worker, w.server} {
		l.Refuse()
		l.Cut()
		w.timers.beat(w, "the cut is noticed", func() bool { return l.store.Outages() > 0 })
	}
}

func (w *distant) comeBack() {
	w.worker.Resume()
	w.server.Resume()
}

func (w *distant) wellDone(took time.Duration) {
	w.Helper()
	eventually(w, "the end", func() bool { return w.task(w.id).State.Settled() })
	task := w.task(w.id)
	r := task.Current()
	expect.Equal(w, task.State, tdf.Succeeded)
	expect.Equal(w, r.Output, "done\n")
	expect.Equal(w, task.Losses+task.Round, 0)
	expect.Equal(w, strings.Count(task.Log, ": executed"), 1, "executed … times", task.Log)
	ran := r.Entered[tdf.Executed].Sub(r.Entered[tdf.Running])
	expect.Compare(w, r.Seconds, ">", 0, took, "in this test")
	expect.Compare(w, r.Seconds, "<=", tdf.For(took), took, "in this test")
	expect.Compare(w, ran, "<=", tdf.For(took), took, "in this test")
	expect.Len(w, expect.Result(w.store.Check(w.Context())).Value(w), 0)
}
