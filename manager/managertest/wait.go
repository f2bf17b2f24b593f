package managertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// finished selects the tasks that a manager must handle.
var finished = redisstate.ListQuery{States: []tdf.State{tdf.Succeeded, tdf.Failed, tdf.TimedOut, tdf.Expired}}

// mostFinished is the maximum number of finished tasks that a wait reads.
const mostFinished = 1000

// stuckAfter is a time in seconds. If no event happens for this time, and if none can follow, the test fails.
const stuckAfter = tdf.Seconds(60 * 60)

// heartbeat is the time in seconds between two heartbeats of the server. After 10 s without a heartbeat, managers log a
// warning.
const heartbeat = tdf.Seconds(4)

// newWait returns the function with which one manager's Run waits. The function advances the clock until another task
// has finished, or until the manager's next round. Without finished tasks and without pauses after errors, the next
// round would have nothing to do. In this case, the function also advances the clock beyond this round, from event to
// event, until a task has finished or no event can follow.
func (w *world) newWait() func(ctx context.Context, round, held time.Duration) error {
	var known []redisstate.ListEntry // the tasks that were finished when the last wait ended
	return func(ctx context.Context, round, held time.Duration) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for until := tdf.Time(0); ; {
			next, err := w.settle()
			if err != nil {
				return err
			}
			places, _, err := w.store.Find(w.ctx, finished, mostFinished)
			if err != nil {
				return err
			}
			if !slices.Equal(places, known) {
				w.changed = w.now
			}
			wake := slices.ContainsFunc(places, func(p redisstate.ListEntry) bool { return !slices.Contains(known, p) })
			known = places
			if wake || ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if until == 0 {
				until = w.nextRound(round, held)
			}
			switch {
			case next < end && (next <= until || len(places) == 0 && held >= tdf.Forever.Std()):
				w.set(next)
			case w.now < until:
				w.set(until)
			case next < end || w.now.Sub(w.changed) < stuckAfter:
				return nil
			default:
				return w.stuck()
			}
		}
	}
}

// nextRound returns the latest time of a manager's next round. The time between rounds grows while no event happens. If
// it did not grow, an hour without an event would take thousands of rounds.
func (w *world) nextRound(round, held time.Duration) tdf.Time {
	idle := w.now.Sub(w.changed) / 8
	return w.now.Add(min(max(tdf.For(round), idle), tdf.For(held)))
}

// settle lets workers and server do all that they can do now, and returns the time of the next event. If no event
// follows, that time is the end of the test's time.
func (w *world) settle() (tdf.Time, error) {
	for {
		if err := w.step(); err != nil {
			return 0, err
		}
		due, _, err := w.store.NextDue(w.ctx)
		if err != nil {
			return 0, err
		}
		next := min(w.start, due.Add(instant)) // the server acts only after a deadline has passed
		for _, r := range w.runs {
			next = min(next, r.ends)
		}
		if next > w.now.Add(aboutInstant) {
			return next, nil
		}
		w.set(w.now.Add(instant))
	}
}

// step lets the workers report once. Then it lets the server settle tasks, and at last it lets the workers claim tasks.
func (w *world) step() error {
	if err := w.report(); err != nil {
		return err
	}
	due, _, err := w.store.NextDue(w.ctx)
	if err != nil {
		return err
	}
	if due <= w.now || w.now.Sub(w.seen) >= heartbeat {
		done, err := w.server.RunOnce(w.ctx)
		if err != nil {
			return err
		}
		w.seen = w.now
		if done.Total() > 0 {
			w.changed = w.now
		}
	}
	return w.claim()
}

// stuck fails the test, because no event can happen any more.
func (w *world) stuck() error {
	lines := []string{"managertest: Run waits, but no event can happen any more:"}
	for _, t := range w.tasks() {
		if t.State != tdf.Archived {
			lines = append(lines, fmt.Sprintf("task %d (%s %s) is %s: %s", t.ID, t.Program, t.Input, t.State, why(t)))
		}
	}
	if len(lines) == 1 {
		lines = append(lines, "all tasks are archived, but Stop does not return true, or a function of a pipeline "+
			"fails")
	}
	err := errors.New(strings.Join(lines, "\n  "))
	w.t.Errorf("%v", err)
	return err
}

func why(t *tdf.Task) string {
	switch t.State {
	case tdf.Running:
		return "the task's program never ends, and the task has neither timeout nor end_before"
	case tdf.Open:
		return "the task's start_after is too late"
	}
	return "the task's callback does not return nil, the function after its stage does not return nil, or Run does " +
		"not handle the task's group"
}
