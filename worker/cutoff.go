package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// errCutOff is why a program ends whose lease has run out, where on_lease_lost says end.
var errCutOff = errors.New("the lease ran out before it could be renewed (on_lease_lost=end)")

// onLeaseLostEnd is the value of on_lease_lost that ends programs.
const onLeaseLostEnd = "end"

// shortestCutOffPause bounds how often leases are looked at.
const shortestCutOffPause = time.Millisecond

// endCutOff ends programs whose leases run out, until ctx ends. It does not wait for Redis: that it cannot be reached is
// the usual reason (docs/guarantees.md, "Leases").
func (s *session) endCutOff(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.claimed: // a lease that may have begun before the last look
		case <-time.After(s.endOverdue(time.Now())):
		}
	}
}

// endOverdue ends the programs whose leases are over, and returns when to look again.
func (s *session) endOverdue(at time.Time) time.Duration {
	next := s.cfg.Lease
	for _, e := range s.holds() {
		if left := e.renewed.Load().Add(s.cfg.Lease).Sub(at); left > 0 {
			next = min(next, left)
		} else {
			e.end(errCutOff)
		}
	}
	return max(next, shortestCutOffPause)
}

// leaseRenewed notes a renewal that was sent then. The lease may have begun at once, however late the answer came.
func (e *execution) leaseRenewed(sent time.Time) {
	for {
		before := e.renewed.Load()
		if !sent.After(*before) || e.renewed.CompareAndSwap(before, &sent) {
			return
		}
	}
}

// renewLate renews the leases of claims whose answer came late, and returns from when on they count. An outage may have used up
// the leases, and the programs would end as soon as they begin.
func (s *session) renewLate(ctx context.Context, c redisstate.Claimed) time.Time {
	if s.cfg.OnLeaseLost != onLeaseLostEnd || len(c.Claims) == 0 || time.Since(c.Sent) < s.renewal() {
		return c.Sent
	}
	renewals := make([]redisstate.Renewal, len(c.Claims))
	for i, claim := range c.Claims {
		renewals[i] = renewalOf(claim.Task, claim.ID)
	}
	renewed, err := s.store.Renew(ctx, tdf.For(s.cfg.Lease), renewals...)
	if err != nil || slices.ContainsFunc(renewed.Lost, func(lost error) bool { return lost != nil }) {
		return c.Sent // what is lost must not run
	}
	return slices.MinFunc(renewed.Sent, time.Time.Compare)
}

// isGivenBack says whether a round that was cut short so is given back.
func isGivenBack(err error) bool { return errors.Is(err, errStopping) || errors.Is(err, errCutOff) }
