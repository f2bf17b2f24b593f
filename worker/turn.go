package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker/resources"
)

// errNoSlot ends an execution for which no slot became free: Redis has refused the report of the slot's last round.
var errNoSlot = errors.New("its worker has no free slot")

// reportAndClaim sends the results of rounds that succeeded, and in the same call, if possible, claims tasks for the
// slots that become free. So a worker with short rounds does not wait for Redis twice.
func (s *supervisor) reportAndClaim(ctx context.Context, results []*execution) error {
	if !s.mayClaimWith(results) {
		return s.broker.Report(ctx, nil, reportsOf(results)...)
	}
	end := func() {}
	defer func() { end() }()
	var lent *resources.Loan
	return s.broker.Report(ctx, &broker.Joint{
		Ask: func() (r redisstate.ClaimParams, ok bool) {
			if lent, ok = s.lend(); !ok {
				return r, false
			}
			most, prefetch := s.reserve(results)
			if most+prefetch == 0 {
				s.endLoan(lent)
				return r, false
			}
			s.work.Add(1) // the supervisor stays open until the claimed tasks have started
			end = func() {
				s.endLoan(lent)
				s.endReservation(most, prefetch, results)
				s.work.Done()
			}
			return s.request(most, prefetch, lent), true
		},
		Waiting: s.awaiting,
		Claimed: func(c redisstate.ClaimResult, received time.Time) { s.startClaimed(ctx, c, received, lent) },
	}, reportsOf(results)...)
}

// request returns a request for at most the given numbers of tasks, which fit in what the claim may use, and in the
// time that the worker has.
func (s *supervisor) request(most, prefetch int, lent *resources.Loan) redisstate.ClaimParams {
	r := redisstate.ClaimParams{Most: most, Prefetch: prefetch, TimeLeft: s.timeLeft()}
	if lent != nil {
		r.Free, r.Whole = lent.Free(), s.whole
	}
	return r
}

// reserve reserves slots for the tasks of a claim: those that are free, and those of the results that are reported in
// the same call, unless prefetched tasks get them. It returns their number, and how many further tasks the claim may
// prefetch.
func (s *supervisor) reserve(results []*execution) (most, prefetch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var handed []*execution
	for _, e := range results {
		switch {
		case e.passedOn:
		case len(s.stock.tasks) > 0: // they came after the round had ended, and before the tasks of this claim
			go s.runInSlot(s.passOn(e))
		default:
			handed = append(handed, e)
		}
	}
	if len(handed) > 0 || len(results) == 0 {
		most = max(0, s.slots()-s.busy-s.reserved+len(handed))
	}
	if len(results) == 0 {
		s.full = most == 0
	}
	s.reserved += most
	// each of the other slots is already reserved by another claim
	for _, e := range handed[:min(most, len(handed))] {
		e.handedOver = true
		s.busy--
	}
	if most > 0 || len(results) > 0 {
		prefetch = s.toPrefetch()
		s.stock.coming += prefetch
	}
	return most, prefetch
}

// endReservation ends a reservation of n slots. The slots of refused results are busy again.
func (s *supervisor) endReservation(n, prefetch int, results []*execution) {
	s.mu.Lock()
	s.reserved -= n
	s.stock.coming -= prefetch
	for _, e := range results {
		if e.handedOver {
			e.handedOver = false
			s.busy++
		}
	}
	s.mu.Unlock()
	s.startFromStock()
	s.wake(false)
}

// mayClaimWith reports whether the report of these results may claim tasks. If not, claimUntilStopped claims tasks.
func (s *supervisor) mayClaimWith(results []*execution) bool {
	if len(results) == 0 || s.once.Load() || s.stopping.Err() != nil || s.drain.on() || s.passing.Load() ||
		s.cfg.SleepAfterSuccess > 0 {
		return false
	}
	for _, e := range results {
		// A failure may pause its slot, Redis may refuse a report again, and a directory is removed
		// after the report.
		if !e.report.Succeeds() || e.refused || e.dir != nil {
			return false
		}
	}
	return true
}

// startClaimed starts the executions of claimed tasks. received is the time at which the answer to the claim came.
func (s *supervisor) startClaimed(ctx context.Context, c redisstate.ClaimResult, received time.Time,
	lent *resources.Loan,
) {
	s.start(c, s.renewLate(ctx, c), received, lent)
	s.endLoan(lent) // other claims may use the rest while this call repeats its reports
}
