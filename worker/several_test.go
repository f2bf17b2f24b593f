package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// newWorlds returns two namespaces that one process serves, with one slot in each. The configuration and the timers of
// the first are those of its workers.
func newWorlds(t *testing.T) (a, b *world) {
	a, b = newWorld(t), newWorld(t)
	for _, w := range []*world{a, b} {
		a.cfg.Namespaces = append(a.cfg.Namespaces, config.Part{Namespace: w.cfg.Namespace, Concurrency: 1})
	}
	return a, b
}

// both returns the workers of two namespaces.
func (w *world) both(b *world, with ...Option) *Worker {
	w.Helper()
	worker := w.worker(with...)
	other := worker.all[1]
	other.store = b.ofStore()
	other.broker = other.newBroker(b.ofStore())
	return worker
}

// Each namespace has slots and files of its own. No task is mixed up with the one of the same id in the other namespace,
// and no two slots have the same number.
func TestNamespacesHaveSlotsOfTheirOwn(t *testing.T) {
	a, b := newWorlds(t)
	a.keepOutputs()
	slots, end := make(chan int, 2), make(chan struct{})
	worker := a.both(b, Handle("p", func(_ context.Context, r *Round) error {
		fmt.Fprintf(r.Stdout, "%s of %s", r.Input, r.Namespace)
		slots <- r.Slot
		<-end
		return nil
	}))
	for _, w := range []*world{a, b} {
		expect.Equal(t, w.open(w.cfg.Namespace, forHandler("p")), 1)
	}
	stop := a.start(worker)
	expect.Equal(t, <-slots+<-slots, 1+2, "the numbers of two slots")
	close(end)
	for _, w := range []*world{a, b} {
		text := w.cfg.Namespace + " of " + w.cfg.Namespace
		expect.Equal(t, w.executed(1).LastOutput(), text)
		fileHas(t, a.path(fileName(w.cfg.Namespace), "p/results/w1-1-0.out"), text)
	}
	stop()
	for _, w := range []*world{a, b} {
		expect.Equal(t, w.workerState(), presence.WorkerGone)
	}
}

// While the Redis of one namespace hangs, the process serves the other one. It can drain in each namespace by itself.
func TestNamespacesDoNotWaitForEachOther(t *testing.T) {
	a, b := newWorlds(t)
	worker := a.both(b, Handle("p", func(context.Context, *Round) error { return nil }))
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	direct := b.store
	b.store = b.connect(proxy.Addr)
	worker.all[1].broker = worker.all[1].newBroker(b.ofStore())
	stop := a.start(worker)
	b.store = direct
	eventually(t, "the start", func() bool { return b.workerState() == presence.WorkerWorking })
	proxy.Hang()
	for range 3 {
		a.executed(a.open("", forHandler("p")))
	}
	proxy.Resume()
	b.executed(b.open("", forHandler("p")))
	tokens := func() int64 {
		return expect.Result(direct.Conn.Redis.LLen(t.Context(), direct.Keys.WakeRequirements()).Result()).Value(t)
	}
	eventually(t, "the worker has taken the tokens of the requirement", func() bool { return tokens() == 0 })
	b.drain("a user")
	a.timers.beat(t, "the drain", func() bool { return b.workerState() == presence.WorkerDraining })
	other := b.open("", forHandler("p"))
	a.executed(a.open("", forHandler("p")))
	expect.Equal(t, a.workerState(), presence.WorkerWorking)
	stop()
	expect.Equal(t, b.task(other).State, tdf.Open)
}

// A process needs its name in all namespaces: if another worker has it in one of them, the others stop.
func TestANameThatIsTakenInOneNamespace(t *testing.T) {
	a, b := newWorlds(t)
	alone := expect.Result(New("w1", b.cfg, withStore(broker.WholeOf(b.connect(redistest.Shared(t)))), WithLog(b.logger()))).Value(t)
	stop := b.start(alone)
	eventually(t, "the other worker", func() bool { return b.workerState() == presence.WorkerWorking })
	expect.Fails(t, a.both(b).Run(t.Context()), "namespace "+b.cfg.Namespace+": ")
	expect.NotEqual(t, a.workerState(), presence.WorkerWorking, "in the first namespace")
	stop()
}

// The idle timeout counts from the last round of all namespaces.
func TestIdleTimeoutOfNamespaces(t *testing.T) {
	a, b := newWorlds(t)
	a.cfg.IdleTimeout = 70 * time.Hour
	running, end := make(chan struct{}), make(chan struct{})
	wait := a.until(t.Context(), a.both(b, Handle("p", func(context.Context, *Round) error {
		running <- struct{}{}
		<-end
		return nil
	})))
	a.timers.waitedFor(t, a.cfg.IdleTimeout)
	id := b.open("", forHandler("p"))
	<-running
	a.timers.fire(t, a.cfg.IdleTimeout) // of the time before the claim
	a.nextHeartbeats(2)
	expect.Equal(t, a.workerState(), presence.WorkerWorking)
	close(end)
	b.executed(id)
	a.timers.fire(t, a.cfg.IdleTimeout)
	wait()
	for _, w := range []*world{a, b} {
		expect.Equal(t, w.workerState(), presence.WorkerGone)
	}
}

func TestFileNamesOfNamespaces(t *testing.T) {
	for ns, want := range map[string]string{"Project-1_x": "Project-1_x", "a/b": "a%2Fb", "..": "%2E%2E", "a%2Fb": "a%252Fb"} {
		expect.Equal(t, fileName(ns), want)
	}
	long := strings.Repeat("ü", 100)
	expect.Equal(t, len(fileName(long)), 64)
	expect.NotEqual(t, fileName(long), fileName(long[2:]))
}
