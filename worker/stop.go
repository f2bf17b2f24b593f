package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf/config"
)

// errStopping ends programs and calls that take too long after the worker began to stop.
var errStopping = errors.New("the worker stops")

// Bounds of the time for which a stopping worker waits for Redis.
const (
	answerBound = 2 * time.Second  // for an answer of Redis, except for answers to results
	reportBound = 10 * time.Second // for a result, after the end of all programs
)

// StopNow ends the grace of a [Worker.Run] whose context has ended. The worker kills its programs, releases their tasks, and
// waits at most two more seconds for Redis.
func (w *Worker) StopNow() {
	w.log.Info("stopping at once: programs are killed")
	w.endGrace()
}

// reportBound returns how long a result may wait for Redis after the worker began to stop. By then, the round's
// program may have used all of the grace and of kill_grace.
func (w *Worker) reportBound() time.Duration { return w.afterGrace(w.cfg.KillGrace + reportBound) }

// programBound returns how long a round may go on after the worker began to stop. It includes the time to end the
// program.
func (w *Worker) programBound() time.Duration { return w.afterGrace(w.cfg.KillGrace) }

func (w *Worker) afterGrace(d time.Duration) time.Duration {
	if w.cfg.Grace > config.Forever-d {
		return config.Forever
	}
	return w.cfg.Grace + d
}

// outlive returns a context that ends with errStopping when grace has passed after the end of stopping. StopNow
// shortens the rest of that time to withoutGrace. The caller must call the returned function, which ends the context
// at once.
func (w *Worker) outlive(stopping context.Context, grace, withoutGrace time.Duration) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(stopping))
	go func() {
		if wait(ctx, stopping.Done()) && w.graceOver(ctx, grace, withoutGrace) {
			end(errStopping)
		}
	}()
	return ctx, end
}

// graceOver waits until the time is over, or until ctx ends, and returns whether the time is over.
func (w *Worker) graceOver(ctx context.Context, grace, withoutGrace time.Duration) bool {
	select {
	case <-w.after(grace):
		return true
	case <-w.noGrace.Done():
		return wait(ctx, w.after(withoutGrace))
	case <-ctx.Done():
		return false
	}
}

// wait waits until c delivers or is closed, or until ctx ends. It returns false if ctx ended.
func wait[T any](ctx context.Context, c <-chan T) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}
