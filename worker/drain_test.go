package worker

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A worker that drains by order finishes its rounds, and claims no more tasks. Its process does not end. The order
// also holds for later workers of the same name, until a user withdraws the order.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; echo done\n")
	p := w.pipe()
	first := w.open(p.path)
	stop := w.start(w.worker())
	p.begun()
	p.ended()
	w.drain("a user")
	w.timers.beat(t, "the worker to drain", func() bool { return w.workerState() == presence.WorkerDraining })
	second := w.open(p.path)
	p.release()
	expect.Equal(t, w.finished(first).State, tdf.Succeeded, "the running task")
	w.nextHeartbeats(3)
	expect.Equal(t, w.task(second).State, tdf.Open, "the next task")
	stop()

	stop = w.start(w.worker())
	eventually(t, "the next worker", func() bool { return w.workerState() == presence.WorkerDraining })
	w.nextHeartbeats(3)
	expect.Equal(t, w.task(second).State, tdf.Open, "with a new worker the next task")
	w.drain("")
	w.timers.beat(t, "the order's end", func() bool { return strings.Contains(w.log.String(), "the order to drain is withdrawn") })
	p.begun()
	p.ended()
	eventually(t, "the worker to work", func() bool { return w.workerState() == presence.WorkerWorking })
	p.release()
	w.finished(second)
	stop()
}

func (w *world) drain(by string) {
	w.Helper()
	known := expect.Result(w.store.Presence.Drain(w.Context(), "w1", by)).Value(w)
	expect.MustTrue(w, known, known)
}

// nextHeartbeats waits for n more heartbeats.
func (w *world) nextHeartbeats(n int) {
	w.Helper()
	for range n {
		seen := w.registered()["seen"]
		w.timers.beat(w, "a heartbeat", func() bool { return w.registered()["seen"] != seen })
	}
}
