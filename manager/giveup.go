package manager

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
)

// defaultAttempts is how often a failing callback is called. With the pauses between them, they take about an hour.
const defaultAttempts = 20

// ErrGivenUp is the error of a Run that ends because only tasks are left whose callbacks have failed for good
// (docs/manager.md, "Callbacks").
var ErrGivenUp = task.NewError(tdf.CodeConflict, "callbacks failed for good")

// say logs the failure of a callback, and stores it in Redis. If it cannot be stored, a restarted manager begins to
// count the attempts again.
func (r *run) say(ctx context.Context, t *Finished, err error, again *retry, now task.Time) {
	r.failure = fmt.Errorf("task %d: %w", t.ID, err)
	log := r.in().Log.With("task", t.ID, "program", t.Program, "state", t.State, "attempts", again.attempts, "error", err)
	if again.givenUp {
		log.Error("callback failed for good; tdf retry --callback calls it again")
	} else {
		log.Error("callback failed; it is called again after a pause", "pause_seconds", float64(again.after.Sub(now)))
	}
	ctx, cancel := context.WithTimeout(ctx, registerBound)
	defer cancel()
	_ = r.in().Store.Callbacks.SayFailure(ctx, callbacks.Failure{ // an error only loses the count
		Task: t.ID, State: t.State, Round: t.Round, Attempts: again.attempts, At: now, Manager: r.in().Name,
		Error: err.Error(), GivenUp: again.givenUp,
	})
}

// recall remembers how often the callbacks of tasks have failed before this run. The lists have the same order, and a
// missing task is nil.
func (r *run) recall(failures []callbacks.Failure, tasks []*task.Task) {
	for i, f := range failures {
		if tasks[i] == nil || !tasks[i].State.Settled() {
			r.handling.release(f.Task, false)
		}
		if f.IsOf(tasks[i]) && r.backoff[f.Task] == nil {
			r.backoff[f.Task] = &retry{attempts: f.Attempts, givenUp: f.GivenUp && r.Attempts > 0, round: r.rounds}
		}
	}
}

// refresh looks whether a user wants callbacks that failed for good to be called again.
func (r *run) refresh(ctx context.Context) error {
	retries, err := r.in().Store.Callbacks.Retries(ctx)
	if err == nil && retries != r.retries {
		r.retries = retries
		r.backoff.forgetGivenUp()
	}
	return err
}

// isStuck returns ErrGivenUp if each task that is left has a callback that failed for good.
func (r *run) isStuck() error {
	n := r.summary.GivenUp
	if n == 0 || r.summary.Counts.Unfinished() > 0 || r.summary.Counts.Waiting() > int64(n) {
		return nil
	}
	err := fmt.Errorf("run callbacks: %w: %d tasks are not archived; tdf ls --callback failed shows them", ErrGivenUp, n)
	if r.failure != nil {
		err = fmt.Errorf("%w; the last failure: %w", err, r.failure)
	}
	return err
}

// A FailedCallback is the record of a callback that has failed for good (docs/manager.md, "Callbacks that fail").
type FailedCallback = callbacks.Failure

// FailedCallbacks returns the records of callbacks that have failed for good, the oldest failures first. It returns at
// most the given number. It leaves out tasks that have changed since.
func (m *Manager) FailedCallbacks(ctx context.Context, most int) ([]FailedCallback, error) {
	return m.in().Store.FailedCallbacks(ctx, most)
}

// RetryCallbacks makes managers call the callbacks of these tasks again.
func (m *Manager) RetryCallbacks(ctx context.Context, ids ...int64) error {
	return m.in().Store.Callbacks.RetryCallbacks(ctx, ids...)
}
