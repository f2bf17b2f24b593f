package redisstate

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
)

// A Renewal says that a worker still has a claim.
type Renewal struct {
	ID    int64
	Round int
	Claim string

	// Begun: the program is there and starts now; the task's timeout counts from here.
	Begun bool
	// Limit sets the claim's deadline to so many seconds from now, at most to Until; 0
	// leaves it. It has no effect once the program has begun.
	Limit tdf.Seconds
	Until tdf.Time
}

// Renew extends the leases of claims. It returns the time by Redis's clock, and for each
// claim nil or the *[tdf.StateError] that says that it is not the worker's any more.
func (s *Store) Renew(ctx context.Context, lease tdf.Seconds, renewals ...Renewal) (tdf.Time, []error, error) {
	args := []any{s.keys.taskPrefix(), lease.String()}
	for _, r := range renewals {
		begun, limit := "", ""
		if r.Begun {
			begun = "1"
		}
		if r.Limit > 0 {
			limit = r.Limit.String()
		}
		args = append(args, r.ID, r.Round, r.Claim, begun, limit, r.Until.String())
	}
	reply, err := s.run(ctx, s.scripts.renew, []string{s.keys.Due()}, args)
	if err != nil {
		return 0, nil, fmt.Errorf("renewing: redis: %w", err)
	}
	parts := list(reply)
	if len(parts) != len(renewals)+1 {
		return 0, nil, fmt.Errorf("renewing: the script answered %v", reply)
	}
	now, _ := tdf.ParseTime(text(parts[0]))
	lost := make([]error, len(renewals))
	for i, line := range parts[1:] {
		if line := text(line); line != "+" {
			found := parseFound(line)
			found.Verb = "renew"
			lost[i] = found
		}
	}
	return now, lost, nil
}
