package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf/config"
)

// errStopping is why something ends whose time was over after the worker was told to stop.
var errStopping = errors.New("the worker was told to stop")

// Bounds of what may delay the end of a worker that was told to stop.
const (
	answerBound = 2 * time.Second  // for what is lost if nobody reads the answer, but no result
	reportBound = 10 * time.Second // for a result, once all programs have ended
)

// StopNow cuts short the grace of a Run whose context has ended: the program is killed, its task
// given back, and whatever waits for Redis waits for two seconds more at most.
func (w *Worker) StopNow() {
	w.log.Info("told to stop at once: programs are killed")
	w.stopNow()
}

// reportBound is how long a result may wait for Redis once the worker was told to stop: it may come
// from a program that took all of its grace, and all that it had to end.
func (w *Worker) reportBound() time.Duration { return w.afterGrace(w.cfg.KillGrace + reportBound) }

// programBound is how long a round may take, with all that belongs to it, once the worker was told
// to stop.
func (w *Worker) programBound() time.Duration { return w.afterGrace(w.cfg.KillGrace) }

func (w *Worker) afterGrace(d time.Duration) time.Duration {
	if w.cfg.Grace > config.Forever-d {
		return config.Forever
	}
	return w.cfg.Grace + d
}

// outlive returns a context that ends, by errStopping, some time after told has ended; if
// StopNow is called then, the time that is left is hurried. The function that comes with it ends
// the context and what watches it.
func (w *Worker) outlive(told context.Context, grace, hurried time.Duration) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(told))
	go func() {
		if wait(ctx, told.Done()) && w.graceOver(ctx, grace, hurried) {
			end(errStopping)
		}
	}()
	return ctx, end
}

// graceOver waits; false: ctx ended before.
func (w *Worker) graceOver(ctx context.Context, grace, hurried time.Duration) bool {
	select {
	case <-w.after(grace):
		return true
	case <-w.haste.Done():
		return wait(ctx, w.after(hurried))
	case <-ctx.Done():
		return false
	}
}

// wait waits for a channel; false: ctx ended before.
func wait[T any](ctx context.Context, c <-chan T) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}
