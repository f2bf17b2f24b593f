package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

const (
	// so that an idle worker does not keep Redis busy, even if its configured sleep is 0
	shortestIdle = 10 * time.Millisecond
	errorPause   = 500 * time.Millisecond // the shortest pause after an error
	// the longest pause while this worker must get none of the due tasks; it leaves the wake tokens to other workers
	unwantedPause = 2 * time.Second
	// between claims of a woken worker, so that a claim gets several tasks while they are opened one by one
	claimGap  = 2 * time.Millisecond
	dueJitter = 20 * time.Millisecond // so that not all workers claim at once when one task becomes due
)

// idleTime returns how long to wait for a wake token after a claim that found no task. The wait ends when the next task
// becomes due, and at the latest after the configured sleep.
func (s *supervisor) idleTime(c *redisstate.ClaimResult) time.Duration {
	longest := max(s.cfg.SleepAfterNoProcessClaimed, shortestIdle)
	due := max(c.Next.Sub(c.Now), 0) + task.For(time.Millisecond+rand.N(dueJitter))
	return min(due.Std(), longest)
}

// sleep waits for d, or until ctx ends.
func (w *Worker) sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		wait(ctx, w.after(d))
	}
}
