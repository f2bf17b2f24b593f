package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// Claimable counts the tasks that a worker with this offer may claim now, at most the given number. Tasks that wait for
// a time, for other tasks or for a limit, and those that are paused, do not count.
func (a *Admin) Claimable(ctx context.Context, offer class.Offer, most int) ([]counts.Claimable, error) {
	s := a.redis()
	var now task.Time
	var paused []limits.Pausing
	err := readings(
		func() (err error) { now, err = s.Now(ctx); return err },
		func() (err error) { paused, err = s.Limits.Paused(ctx); return err },
	)
	if err != nil {
		return nil, fmt.Errorf("count the tasks for a worker: %w", err)
	}
	var holds task.Paused
	for _, p := range paused {
		if p.Failures == 0 { // others hold only when some tasks have failed
			holds = append(holds, p.Pausable)
		}
	}
	return s.Counters.Claimable(ctx, &offer, holds, now, most)
}
