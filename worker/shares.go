package worker

import (
	"context"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker/resources"
)

// roundsPerCore bounds how many rounds run at once, because tasks may ask for a small part of a core, or for none.
const (
	roundsPerCore = 4
	mostRounds    = 1000
)

// MostRounds returns how many rounds a worker that offers these resources runs at once.
func MostRounds(offered class.Amounts) int {
	cores := int(offered.Of(class.CPUs) / class.Scale)
	return min(roundsPerCore*cores, mostRounds)
}

// offerResources makes the pool of what the worker offers of the machine, as its key resources says. files is how many
// files the worker may have open.
func (w *Worker) offerResources(machine *resources.Machine, files uint64) error {
	if w.cfg.Resources == nil {
		return nil
	}
	if w.cfg.API.URL != "" {
		return wrongKey("resources", "a worker over the HTTP API cannot offer resources; expected none", nil)
	}
	w.pool = resources.New(w.cfg.Resources, machine, w.plainSlots())
	w.whole = w.pool.Free()
	w.log.Info("the worker offers resources", "resources", w.pool.Offered().String())
	w.mostAtOnce = MostRounds(w.pool.Offered())
	if !w.inProcess() {
		w.mostAtOnce = slotsWithin(files, w.mostAtOnce)
	}
	return nil
}

// offeredResources returns what the worker has when no task runs, or nil.
func (w *Worker) offeredResources() class.Amounts {
	if w.pool == nil {
		return nil
	}
	return w.pool.Offered()
}

// lend returns what a claim may use: everything that is free, or nil if the worker offers no resources. It returns
// false if another claim is under way. When that one ends, the claiming loop gets the signal `freed`.
func (s *supervisor) lend() (lent *resources.Loan, ok bool) {
	if s.pool == nil {
		return nil, true
	}
	s.refused.Store(true)
	lent = s.pool.Lend()
	if lent == nil {
		return nil, false
	}
	s.refused.Store(false)
	return lent, true
}

// endLoan ends what a claim may use. It may be called again.
func (s *supervisor) endLoan(lent *resources.Loan) {
	if lent != nil && s.pool.End(lent) && s.refused.Swap(false) {
		s.freed.give()
	}
}

// takeShare takes what the task needs from what its claim has offered. Redis has chosen the task so that it fits.
func (e *execution) takeShare(lent *resources.Loan) {
	if lent == nil {
		return
	}
	fits := false
	e.share, fits = e.s.pool.Take(e.task.Request(), lent)
	e.noShare = !fits
}

// freeShare gives back the execution's share. The program has ended.
func (e *execution) freeShare() {
	if e.s.pool != nil {
		e.s.pool.Put(e.share)
	}
}

// await waits until there may be a task for the worker, at most until an idle worker claims again. It returns early
// when resources have become free. While the worker is kept for a task, tokens are for other workers.
func (s *supervisor) await(c redisstate.ClaimResult) bool {
	if s.pool == nil {
		return s.broker.Await(s.stopping, s.idle(c))
	}
	ctx, end := context.WithCancel(s.stopping)
	defer end()
	if c.Kept {
		select {
		case <-s.freed:
			return true
		case <-s.after(s.idle(c)):
		case <-ctx.Done():
		}
		return false
	}
	freed := make(chan bool, 1)
	go func() {
		freed <- wait(ctx, s.freed)
		end()
	}()
	woken := s.broker.Await(ctx, s.idle(c))
	end()
	return <-freed || woken
}
