package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// errNoSlot ends an execution for which no slot became free: Redis has refused the report of the slot's last round.
var errNoSlot = errors.New("its worker has no free slot")

// reportAndClaim sends the results of rounds that succeeded, and in the same call claims tasks for the slots that become
// free. So a worker with short rounds does not wait for Redis twice.
func (s *session) reportAndClaim(ctx context.Context, results []delivery) (refused []delivery, err error) {
	most := s.slotsAfter(results)
	if most == 0 || !s.claiming.TryLock() { // the other goroutine that claims has the lock
		return s.deliver(ctx, results, s.execute)
	}
	defer s.claiming.Unlock()
	s.work.Add(1) // the session stays open until the claimed tasks have started
	defer s.work.Done()
	var c redisstate.Claimed
	refused, err = s.deliver(ctx, results, func(ctx context.Context, moves ...tdf.Move) ([]redisstate.Outcome, error) {
		if most == 0 { // deliver sends some results again
			return s.execute(ctx, moves...)
		}
		r := redisstate.ClaimRequest{Worker: s.name, Most: most, Lease: tdf.For(s.cfg.Lease)}
		most = 0
		// The error of the claim is ignored here. claimUntilStopped claims again, and gets the same error.
		outcomes, claimed, err, _ := s.store.ExecuteAndClaim(ctx, r, moves...)
		c = claimed
		return outcomes, err
	})
	s.startClaimed(ctx, c)
	return refused, err
}

// slotsAfter returns the number of slots that are free after the results have been reported. It returns 0 if the worker must
// not claim tasks with these results: then claimUntilStopped claims tasks.
func (s *session) slotsAfter(results []delivery) int {
	if len(results) == 0 || s.stopping.Err() != nil || s.drain.on() || s.resuming.Load() || s.cfg.SleepAfterSuccess > 0 {
		return 0
	}
	if avoid, probing := s.breakers.avoided(); len(avoid) > 0 || probing {
		return 0
	}
	for _, d := range results {
		if !d.success { // a failure may pause its program, or its slot
			return 0
		}
	}
	return max(0, s.freeSlots()) + len(results)
}

// startClaimed starts the executions of claimed tasks.
func (s *session) startClaimed(ctx context.Context, c redisstate.Claimed) {
	for _, claim := range c.Claims {
		s.breakers.claimed(claim.Task.Program)
	}
	received := time.Now()
	s.start(c, s.renewLate(ctx, c), received)
}
