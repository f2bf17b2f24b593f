package worker

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/worker/resources"
)

// roundsPerCore bounds how many rounds run at once, because tasks may ask for a small part of a core, or for none.
const (
	roundsPerCore = 4
	mostRounds    = 1000
)

// offerResources makes the pool of what the worker offers, as its key resources says.
func (w *Worker) offerResources() error {
	if w.cfg.Resources == nil {
		return nil
	}
	if w.cfg.API.URL != "" {
		return wrongKey("resources", "a worker over the HTTP API cannot offer resources; expected none", nil)
	}
	w.pool = resources.New(w.cfg.Resources, resources.Here(), w.plainSlots())
	w.whole = w.pool.Free()
	w.log.Info("the worker offers resources", "resources", w.pool.Offered().String())
	cores := int(w.pool.Offered().Of(tdf.ResourceCPUs) / tdf.ResourceScale)
	w.mostAtOnce = min(roundsPerCore*cores, mostRounds)
	if !w.inProcess() {
		w.mostAtOnce = slotsWithin(openFiles(), w.mostAtOnce)
	}
	return nil
}

// offeredResources returns what the worker has when no task runs, or nil.
func (w *Worker) offeredResources() tdf.Amounts {
	if w.pool == nil {
		return nil
	}
	return w.pool.Offered()
}

// lend returns what a claim may use: everything that is free. So no other claim offers it at the same time. It returns
// nil if the worker offers no resources.
//
// If the Redis of one namespace does not answer the claim, the claims of the others may use the rest after a while.
func (s *supervisor) lend() *resources.Pool {
	if s.pool == nil {
		return nil
	}
	lent := s.pool.Lend()
	if s.several() {
		time.AfterFunc(patience, func() { s.takeBack(lent) })
	}
	return lent
}

// takeBack takes back the rest of what a claim may use. It may be called again.
func (s *supervisor) takeBack(lent *resources.Pool) {
	if lent != nil {
		s.pool.Return(lent)
	}
}

// takeShare takes what the task needs from what its claim has offered. If the answer to the claim was late, another
// claim may have used that. Then the execution gets no share, unless the task fits in what is free now.
func (e *execution) takeShare(lent *resources.Pool) {
	if lent == nil {
		return
	}
	request, fits := e.task.Request(), false
	e.share, fits = lent.Take(request)
	if !fits {
		e.share, fits = e.s.pool.Take(request)
	}
	e.noShare = !fits
}

// freeShare gives back the execution's share. The program has ended.
func (e *execution) freeShare() {
	if e.s.pool != nil {
		e.s.pool.Put(e.share)
	}
}

// noteFreed makes idle lanes claim, because a task may fit now that did not fit before.
func (s *supervisor) noteFreed() {
	if s.pool == nil {
		return
	}
	for _, l := range s.lanes {
		l.shareFreed.give()
	}
}

// await waits for a task, as the protocol's Await does. It also returns true when resources have become free.
func (s *lane) await(longest time.Duration) bool {
	if s.pool == nil {
		return s.broker.Await(s.stopping, longest)
	}
	ctx, end := context.WithCancel(s.stopping)
	defer end()
	freed := make(chan bool, 1)
	go func() {
		freed <- wait(ctx, s.shareFreed)
		end()
	}()
	woken := s.broker.Await(ctx, longest)
	end()
	return <-freed || woken
}
