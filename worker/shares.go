package worker

import (
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate"
)

// offerResources makes the pool of what the worker offers of the machine, as its key resources says. files is how many
// files the worker may have open.
func (w *Worker) offerResources(machine *resources.Machine, files uint64) {
	if w.cfg.Resources == nil {
		return
	}
	w.pool = resources.New(w.cfg.Resources, machine, w.plainSlots())
	w.whole = w.pool.Free()
	w.log.Info("the worker offers resources", "resources", w.pool.Offered().String())
	w.mostAtOnce = resources.MostRounds(w.pool.Offered())
	if !w.inProcess() {
		w.mostAtOnce = slotsWithin(files, w.mostAtOnce)
	}
}

// offeredResources returns what the worker has when no task runs, or nil.
func (w *Worker) offeredResources() class.Amounts {
	if w.pool == nil {
		return nil
	}
	return w.pool.Offered()
}

// lend lets a claim use everything that is free. It returns nil if the worker offers no resources.
func (s *supervisor) lend(claim *redisstate.ClaimParams) *resources.Loan {
	if s.pool == nil {
		return nil
	}
	lent := s.pool.Lend()
	claim.Free, claim.Whole = lent.Free(), s.whole
	return lent
}

// endLoan ends what a claim may use.
func (s *supervisor) endLoan(lent *resources.Loan) {
	if lent != nil {
		s.pool.End(lent)
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
