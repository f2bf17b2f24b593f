package worker

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A namespace is one whose tasks the worker runs, with what the worker knows there.
type namespace struct {
	ns       string
	log      *slog.Logger
	broker   protocol // nil while the worker is not connected
	breakers breakers
	drain    drain
}

func (w *Worker) newNamespace(name string) *namespace {
	return &namespace{
		ns: name, log: w.log, breakers: newBreakers(w.cfg.MaxFailuresInRow, w.cfg.SleepAfterFailure, w.log),
		drain: newDrain(),
	}
}

// state returns the worker's state for its heartbeats, except while the worker stops.
func (n *namespace) state() string {
	if n.drain.on() {
		return presence.WorkerDraining
	}
	return presence.WorkerWorking
}

// A lane is what a supervisor does for one namespace: it claims and runs its tasks, renews their leases, and reports
// them. The lanes share the slots. Each has loops of its own, so that the Redis of one namespace delays no other.
type lane struct {
	*supervisor
	*namespace

	alive       context.Context // done when the programs of this namespace must end
	endPrograms context.CancelCauseFunc
	nameLost    atomic.Pointer[broker.NameTaken] // nil unless another worker has taken the name

	held  map[*execution]bool // executions that are not yet reported; the lock is mu
	ended []*execution        // those that have ended and are not in a report yet; the lock is mu

	timeline timeline

	renewed, reported signal
	reporting         chan struct{} // a lock, so that only one call at a time reports running rounds

	resuming atomic.Bool // the next claim must resume after unwanted tasks
}

func newLane(s *supervisor, n *namespace) *lane {
	l := &lane{
		supervisor: s, namespace: n, held: map[*execution]bool{},
		reporting: make(chan struct{}, 1), renewed: make(signal, 1), reported: make(signal, 1),
	}
	l.timeline.longest = mergedPerSlot * tdf.Seconds(s.slots())
	l.alive, l.endPrograms = context.WithCancelCause(s.alive)
	return l
}

// startLoops starts the loops of the lane, which end with the context looping.
func (s *lane) startLoops() {
	s.loops.Go(func() { s.keepLeases(s.looping) })
	s.loops.Go(func() { s.reportRunning(s.looping) })
	s.loops.Go(func() { s.report(s.looping, s.delivering) })
	s.loops.Go(func() { s.shareSuccesses(s.looping) })
	s.loops.Go(func() { s.keepTimeline(s.looping) })
}

// executions returns the executions of the lane, in no particular order.
func (s *lane) executions() []*execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*execution, 0, len(s.held))
	for e := range s.held {
		all = append(all, e)
	}
	return all
}

// allExecutions returns the executions of all lanes.
func (s *supervisor) allExecutions() (all []*execution) {
	for _, l := range s.lanes {
		all = append(all, l.executions()...)
	}
	return all
}
