package worker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/worker/record"
)

// newWorlds returns two namespaces that one worker serves. The configuration of the first is the worker's.
func newWorlds(t *testing.T) (a, b *world) {
	a, b = newWorld(t), newWorld(t)
	a.cfg.Namespaces = []string{a.cfg.Namespace, b.cfg.Namespace}
	return a, b
}

// both returns a worker of two namespaces. Its timers are those of the first.
func (w *world) both(b *world, with ...Option) *Worker {
	w.Helper()
	return w.workerOnAll([]broker.DirectStore{w.store, b.store}, with...)
}

// lanesWaiting returns how many lanes wait for a slot.
func (s *supervisor) lanesWaiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// A lane that has used its turns waits behind the others, also if it was the first to wait.
func TestTurnsEndBehindTheOthers(t *testing.T) {
	s := &supervisor{}
	a, b := &lane{supervisor: s}, &lane{supervisor: s}
	s.waiting = []*lane{a, b}
	for range mostTurns {
		expect.MustEqual(t, a.fairShare(1, 1), 1)
	}
	expect.Equal(t, a.fairShare(1, 1), 0)
	expect.Equal(t, a.fairShare(1, 0), 0)
	expect.Equal(t, b.fairShare(1, 0), 1)
}

// With one slot, two namespaces with many tasks take turns, and no task is mixed up with the one of the same id in the
// other namespace.
func TestNamespacesTakeTurns(t *testing.T) {
	a, b := newWorlds(t)
	a.keepOutputs()
	a.cfg.SleepAfterFailure = 0
	left := map[string]int{a.cfg.Namespace: 60, b.cfg.Namespace: 30}
	for _, w := range []*world{a, b} {
		for i := range left[w.cfg.Namespace] {
			w.open(fmt.Sprint(w.cfg.Namespace, "#", i+1), forHandler("p"))
		}
	}
	var mu sync.Mutex
	last, run, longest := "", 0, 0
	worker := a.both(b, Handle("p", func(_ context.Context, r *Round) error {
		fmt.Fprintf(r.Stdout, "%s is %s#%d", r.Input, r.Namespace, r.ID)
		mu.Lock()
		defer mu.Unlock()
		left[r.Namespace]--
		if last != r.Namespace {
			last, run = r.Namespace, 0
		}
		if left[a.cfg.Namespace] > 0 && left[b.cfg.Namespace] > 0 {
			run++
			longest = max(longest, run)
			eventually(t, "both lanes wait", func() bool { return r.execution.s.lanesWaiting() == 2 })
		}
		return nil
	}))
	stop := a.start(worker)
	for w, tasks := range map[*world]int64{a: 60, b: 30} {
		for id := range tasks {
			name := fmt.Sprint(w.cfg.Namespace, "#", id+1)
			expect.Equal(t, w.executed(id+1).LastOutput(), name+" is "+name)
		}
	}
	stop()
	expect.Compare(t, longest, ">", 1, "rounds of one namespace in a row")
	expect.Compare(t, longest, "<=", mostTurns+1, "rounds of one namespace in a row")
	for _, w := range []*world{a, b} {
		name := fmt.Sprint(w.cfg.Namespace, "#1")
		fileHas(t, a.path("p/results/w1-"+fileName(w.cfg.Namespace)+"-1-0.out"), name+" is "+name)
		expect.Equal(t, w.task(1).Releases, 0)
	}
}

// While the Redis of one namespace hangs, the worker serves the other one: it claims, renews, and reports.
func TestANamespaceIsAway(t *testing.T) {
	a, b := newWorlds(t)
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	b.cfg.Namespace = a.cfg.Namespaces[1]
	direct := b.store
	b.store = b.connect(proxy.Addr)
	a.cfg.Concurrency = 3
	running, end := make(chan *lane, 10), make(chan struct{})
	worker := a.both(b, Handle("p", func(_ context.Context, r *Round) error {
		running <- r.execution.s
		if r.Input != "short" {
			<-end
		}
		return nil
	}))
	away, long := b.open("away", forHandler("p")), a.open("long", forHandler("p"))
	stop := a.start(worker)
	<-running
	s := <-running
	proxy.Hang()
	before := a.task(long).LeaseUntil
	a.timers.beat(t, "a renewal", func() bool { return a.task(long).LeaseUntil > before })
	seen := a.registered()["seen"]
	a.timers.beat(t, "a heartbeat", func() bool { return a.registered()["seen"] > seen })
	eventually(t, "a claim that waits", func() bool { return s.freeSlots() == 0 && proxy.Held() > 0 })
	for range 3 {
		a.executed(a.open("short", forHandler("p")))
		<-running
	}
	close(end)
	a.executed(long)
	proxy.Resume()
	b.store = direct
	b.executed(away)
	stop()
}

// A worker drains in each namespace by itself, and needs the name in all of them.
func TestNamesAndDrainsOfNamespaces(t *testing.T) {
	a, b := newWorlds(t)
	worker := a.both(b, Handle("p", func(context.Context, *Round) error { return nil }))
	stop := a.start(worker)
	eventually(t, "the start", func() bool { return b.workerState() == presence.WorkerWorking })
	b.drain("a user")
	a.timers.beat(t, "the drain", func() bool { return b.workerState() == presence.WorkerDraining })
	var other int64
	eventually(t, "a task stays open", func() bool { // a claim may have been under way
		other = b.open("", forHandler("p"))
		a.executed(a.open("", forHandler("p")))
		return b.task(other).State == tdf.Open
	})
	expect.Equal(t, a.workerState(), presence.WorkerWorking)

	second := expect.Result(New("w1", b.cfg, withStore(b.connect(redistest.Shared(t))))).Value(t)
	expect.Fails(t, second.Run(t.Context()), "w1")
	stop()
	expect.Equal(t, a.workerState(), presence.WorkerGone)
	expect.Equal(t, b.workerState(), presence.WorkerGone)

	alone := expect.Result(New("w1", b.cfg, withStore(b.connect(redistest.Shared(t))), WithLog(b.logger()))).Value(t)
	stop = b.start(alone)
	eventually(t, "the other worker", func() bool { return b.workerState() == presence.WorkerDraining })
	expect.Fails(t, a.both(b).Run(t.Context()), "w1")
	expect.Equal(t, a.workerState(), presence.WorkerGone, "the name in the first namespace")
	stop()
}

// The output of a killed worker goes to the file of its namespace.
func TestLeftoversOfNamespaces(t *testing.T) {
	a, b := newWorlds(t)
	worker := a.both(b)
	for i, ns := range []string{a.cfg.Namespace, b.cfg.Namespace, "another"} {
		leaveOutput(t, record.NewSlot(worker.rounds(), i+1, nil),
			record.RoundRef{Program: "p", Task: 17, Round: 3, Namespace: ns})
	}
	worker.sweep(t.Context())
	for _, ns := range a.cfg.Namespaces {
		fileHas(t, a.path("p/results/w1-"+fileName(ns)+"-17-3.out"), "of the killed worker")
	}
	a.logged("could not be kept")
}

func TestFileNamesOfNamespaces(t *testing.T) {
	long := strings.Repeat("n", 200)
	seen := map[string]string{}
	for ns, want := range map[string]string{
		"Project-1_x": "Project-1_x", "a/b": "a_b.", "a_b": "a_b", ".a": "_a.", "ü": "_.", long: long[:longestPart] + ".",
		long[:199]: long[:longestPart] + ".",
	} {
		got := fileName(ns)
		expect.True(t, strings.HasPrefix(got, want), got, want)
		expect.Compare(t, len(got), "<=", longestPart+17)
		expect.Equal(t, seen[got], "", got)
		seen[got] = ns
	}
}
