package worker

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// How often to ask whether a task has expired whose end_before is over, and how long to leave
// the server for it before that.
const (
	expiryPause = time.Second
	expirySlack = 20 * time.Millisecond
)

// renewal names the claim; what else it says is added by the caller.
func (e *execution) renewal() redisstate.Renewal {
	return redisstate.Renewal{ID: e.task.ID, Round: e.task.Round, Claim: e.claim, Until: e.task.EndBefore}
}

// renew returns the time by Redis's clock, or an error that ends the execution: the
// *[tdf.StateError] of a task that is not ours any more, or that of ctx.
func (e *execution) renew(ctx context.Context, r redisstate.Renewal) (tdf.Time, error) {
	now, lost, err := e.w.store.Renew(ctx, tdf.For(e.w.cfg.Lease), r)
	if err != nil {
		return 0, err
	}
	return now, lost[0]
}

// keep renews the lease until ctx ends. When it finds that the task is lost, it calls end with
// what was found. An error is no such finding: the program runs on.
func (e *execution) keep(ctx context.Context, end context.CancelCauseFunc) {
	for wait(ctx, time.After(e.nextRenewal(time.Now()))) {
		_, err := e.renew(ctx, e.renewal())
		switch {
		case err == nil, ctx.Err() != nil:
		case isLost(err):
			end(err)
			return
		default:
			e.log.Warn("the lease could not be renewed, trying again", "error", err)
		}
	}
}

// nextRenewal: every third of the lease, and when end_before is over, since the task may have
// expired then.
func (e *execution) nextRenewal(at time.Time) time.Duration {
	next := e.w.renewal()
	if e.task.EndBefore == tdf.Never {
		return next
	}
	c := e.clock.Load()
	left := (e.task.EndBefore.Sub(c.redis) - tdf.For(at.Sub(c.local))).Std()
	if left < 0 {
		return min(next, expiryPause)
	}
	return min(next, left+expirySlack)
}
