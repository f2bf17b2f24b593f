package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// errStopping ends programs and calls that take too long after the worker began to stop.
var errStopping = errors.New("the worker stops")

// Bounds of the time for which a stopping worker waits for Redis.
const (
	answerBound = 2 * time.Second  // for an answer of Redis to any call except a report
	reportBound = 10 * time.Second // for the reports, after the end of all programs
)

// leaveBound is the minimum time that a handler has to return after a stopping worker has ended the handler's context.
// It is shorter than answerBound, so that after StopNow there is time to report.
const leaveBound = time.Second

// StopNow cuts short the configured grace of a [Worker.Run] whose context has ended. The worker kills its programs,
// releases their tasks, and waits at most four more seconds for Redis (docs/operations.md, "Stopping a worker").
func (w *Worker) StopNow() {
	w.options.log.Info("stopping at once: programs are killed")
	w.endGrace()
}

// reportBound returns how long a report may wait for Redis after the worker began to stop. The time includes grace and
// kill_grace, because the round's program may use all of both.
func (w *Worker) reportBound() time.Duration { return w.afterGraces(reportBound) }

// programBound returns how long a round may continue after the worker began to stop. It includes the time to end the
// program.
func (w *Worker) programBound() time.Duration { return w.afterGraces(0) }

// afterGraces returns the time grace + kill_grace + d.
func (w *Worker) afterGraces(d time.Duration) time.Duration {
	return (task.For(w.cfg.Grace) + task.For(w.cfg.KillGrace) + task.For(d)).Std()
}

// outlive returns a context that ends with errStopping when the context stopping has ended and the time grace has
// passed since then. StopNow shortens the rest of that time to withoutGrace. The context also ends with the context
// until, or when the returned function is called: at least one of these must happen.
func (w *Worker) outlive(stopping, until context.Context, grace, withoutGrace time.Duration) (context.Context,
	context.CancelCauseFunc,
) {
	ctx, end := context.WithCancelCause(until)
	go func() {
		if wait(ctx, stopping.Done()) && w.graceOver(ctx, grace, withoutGrace) {
			end(errStopping)
		}
	}()
	return ctx, end
}

// graceOver waits until the time grace is over, or until ctx ends. It returns whether the time is over. After StopNow,
// the time is withoutGrace.
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
