package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/redisstate"
)

// errLeaseEnded ends a program whose lease has run out, if on_lease_lost=end.
var errLeaseEnded = errors.New("the lease ran out before it could be renewed (on_lease_lost=end)")

// onLeaseLostEnd is the value of on_lease_lost that makes the worker end programs.
const onLeaseLostEnd = "end"

// shortestLeasePause is the shortest time between two checks of the leases.
const shortestLeasePause = time.Millisecond

// endWhenLeasesEnd ends programs whose leases run out, until ctx ends. It does not wait for Redis, since the usual
// cause is that Redis cannot be reached (docs/guarantees.md, "Leases").
func (s *supervisor) endWhenLeasesEnd(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.claimed:
			// Check again at once: there is a new lease, which may have begun before the last check, so it may end
			// before the next one.
		case <-s.after(s.endWithoutLease(time.Now())):
		}
	}
}

// endWithoutLease ends the programs whose leases have run out, and returns how long to wait before the next check.
func (s *supervisor) endWithoutLease(at time.Time) time.Duration {
	next := s.cfg.Lease
	for _, e := range s.executions() {
		if left := e.renewed.Load().Add(s.cfg.Lease).Sub(at); left > 0 {
			next = min(next, left)
		} else {
			e.end(errLeaseEnded)
		}
	}
	return max(next, shortestLeasePause)
}

// leaseRenewed records when a renewal was sent. The new lease counts from that time, even if Redis's answer came
// late.
func (e *execution) leaseRenewed(sent time.Time) {
	for {
		before := e.renewed.Load()
		if !sent.After(*before) || e.renewed.CompareAndSwap(before, &sent) {
			return
		}
	}
}

// renewLate returns when the leases of new claims began. If Redis's answer came late, for example because of an outage,
// the leases may have run out already. With on_lease_lost=end, the programs would then end at once. So renewLate first
// renews the leases.
func (s *supervisor) renewLate(ctx context.Context, c redisstate.ClaimResult) time.Time {
	if s.cfg.OnLeaseLost != onLeaseLostEnd || len(c.Claims) == 0 || time.Since(c.Sent) < s.heartbeatPause() {
		return c.Sent
	}
	renewals := make([]redisstate.LeaseRenewal, len(c.Claims))
	for i, claim := range c.Claims {
		renewals[i] = renewalOf(claim.Task, claim.ID)
	}
	renewed, err := s.broker.Renew(ctx, renewals...)
	if err != nil || slices.ContainsFunc(renewed.Lost, func(lost error) bool { return lost != nil }) {
		return c.Sent // keepLeases will end the programs of lost tasks
	}
	return slices.MinFunc(renewed.Sent, time.Time.Compare)
}

// isReleased reports whether the worker releases a task whose round was ended by err.
func isReleased(err error) bool {
	return errors.Is(err, errStopping) || errors.Is(err, errLeaseEnded) || errors.Is(err, errNoSlot)
}
