package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tdf-framework/tdf/redisstate"
)

const (
	shortestIdle  = 10 * time.Millisecond  // a sleep of 0 must not make a worker with nothing to do spin
	errorPause    = 500 * time.Millisecond // at least, after an error
	unwantedPause = 2 * time.Second        // at most, while tasks wait that are only for others, whom the tokens are for
	dueJitter     = 20 * time.Millisecond  // so that not all workers come for the one task that becomes due
)

// idle is how long to wait for a token when nothing could be claimed: until the next task becomes
// due, if that is known and soon.
func (w *Worker) idle(c redisstate.Claimed) time.Duration {
	longest := w.avoid.next(max(w.cfg.SleepAfterNoProcessClaimed, shortestIdle))
	due := max(c.Next.Sub(c.Now).Std(), 0)
	if due >= longest {
		return longest
	}
	return min(due+time.Millisecond+rand.N(dueJitter), longest)
}

// sleep ends early with ctx.
func (w *Worker) sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		wait(ctx, w.after(d))
	}
}
