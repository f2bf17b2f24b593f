package worker

import (
	"context"
	"errors"
	"time"
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
	for wait(ctx, time.After(s.endOverdue(time.Now()))) {
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

// leaseRenewed notes that Redis has just extended the lease.
func (e *execution) leaseRenewed() {
	now := time.Now()
	e.renewed.Store(&now)
}

// isGivenBack says whether a round that was cut short so is given back.
func isGivenBack(err error) bool { return errors.Is(err, errStopping) || errors.Is(err, errCutOff) }
