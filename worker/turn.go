package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf/redisstate"
)

// errNoSlot ends an execution for which no slot became free: Redis has refused the report of the slot's last round.
var errNoSlot = errors.New("its worker has no free slot")

// reportAndClaim sends the results of rounds that succeeded, and in the same call claims tasks for the slots that
// become free. So a worker with short rounds does not wait for Redis twice.
func (s *lane) reportAndClaim(ctx context.Context, results []*execution) error {
	most := 0
	turns, ok := s.broker.(turner)
	if ok && s.mayClaimWith(results) {
		most = s.reserve(results)
	}
	if most == 0 {
		return s.broker.Report(ctx, reportsOf(results)...)
	}
	defer s.holdReservation(most, results)()
	s.work.Add(1) // the supervisor stays open until the claimed tasks have started
	defer s.work.Done()
	return turns.Turn(ctx, s.awaiting, s.request(most), func(c redisstate.ClaimResult, received time.Time) {
		s.startClaimed(ctx, c, received)
	}, reportsOf(results)...)
}

// request returns a request for at most the given number of tasks.
func (s *lane) request(most int) redisstate.ClaimParams {
	return redisstate.ClaimParams{Most: most}
}

// reserve reserves slots for the tasks of a claim: those that are free, and those of the results that are reported in
// the same call. It returns their number. If other lanes wait for slots, it reserves fewer (see fairShare).
func (s *lane) reserve(results []*execution) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.fairShare(max(0, s.slots()-s.busy-s.reserved+len(results)), len(results))
	s.reserved += most
	// each of the other slots is already reserved by another claim
	for _, e := range results[:min(most, len(results))] {
		e.handedOver = true
		s.busy--
	}
	return most
}

// endReservation ends a reservation of n slots. The slots of refused results are busy again.
func (s *lane) endReservation(n int, results []*execution) {
	s.mu.Lock()
	s.reserved -= n
	for _, e := range results {
		if e.handedOver {
			e.handedOver = false
			s.busy++
		}
	}
	s.mu.Unlock()
	s.wake()
}

// mayClaimWith reports whether the report of these results may claim tasks. If not, claimUntilStopped claims tasks.
func (s *lane) mayClaimWith(results []*execution) bool {
	if len(results) == 0 || s.once.Load() || s.stopping.Err() != nil || s.drain.on() || s.resuming.Load() ||
		s.cfg.SleepAfterSuccess > 0 {
		return false
	}
	if avoid, probing := s.breakers.avoided(); len(avoid) > 0 || probing {
		return false
	}
	for _, e := range results {
		// A failure may pause its program or its slot, Redis may refuse a report again, and a directory is removed
		// after the report.
		if !e.report.Succeeds() || e.refused || e.dir != nil {
			return false
		}
	}
	return true
}

// startClaimed starts the executions of claimed tasks. received is the time at which the answer to the claim came.
func (s *lane) startClaimed(ctx context.Context, c redisstate.ClaimResult, received time.Time) {
	for _, claim := range c.Claims {
		s.breakers.claimed(claim.Task.Program)
	}
	s.start(c, s.renewLate(ctx, c), received)
}
