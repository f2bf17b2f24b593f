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

// finished selects the tasks that wait for a manager.
var finished = redisstate.ListQuery{States: []tdf.State{tdf.Succeeded, tdf.Failed, tdf.TimedOut, tdf.Expired}}

// mostFinished is how many finished tasks a wait reads.
const mostFinished = 1000

// stuckAfter is the time without an event after which a test fails.
const stuckAfter = tdf.Seconds(60 * 60)

// heartbeat is the time between two heartbeats of the server. Managers warn after 10 s without one.
const heartbeat = tdf.Seconds(4)

// newWait returns how the Run of one manager waits: time passes until another task has finished, or until the manager's next
// round. Without a finished task, time also passes the next round: that round would find nothing to do.
func (w *world) newWait() func(ctx context.Context, round, held time.Duration) error {
	var known []redisstate.ListEntry // the finished tasks at the end of the last wait
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
			case next < end && (next <= until || len(places) == 0):
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

// nextRound returns when a manager makes its next round at the latest. Rounds become rare while nothing happens. Otherwise an
// hour without an event would take thousands of rounds.
func (w *world) nextRound(round, held time.Duration) tdf.Time {
	idle := w.now.Sub(w.changed) / 8
	return w.now.Add(min(max(tdf.For(round), idle), tdf.For(held)))
}

// settle carries out everything that is due, and returns the time of the next event. Without a next event,
// the time is not before tdf.Never.
func (w *world) settle() (tdf.Time, error) {
	for {
		if err := w.step(); err != nil {
			return 0, err
		}
		due, err := w.store.NextDue(w.ctx)
		if err != nil {
			return 0, err
		}
		next := min(w.start, due.Add(instant)) // some times must be over before the server acts
		for _, r := range w.runs {
			next = min(next, r.ends)
		}
		if next > w.now.Add(aboutInstant) {
			return next, nil
		}
		w.set(w.now.Add(instant))
	}
}

// step has the workers report, the server settle what is due, and the workers claim, each once.
func (w *world) step() error {
	if err := w.report(); err != nil {
		return err
	}
	due, err := w.store.NextDue(w.ctx)
	if err != nil {
		return err
	}
	if due <= w.now || w.now.Sub(w.seen) >= heartbeat {
		done, err := w.server.Settle(w.ctx)
		if err != nil {
			return err
		}
		if w.seen = w.now; done.Total() > 0 {
			w.changed = w.now
		}
	}
	return w.claim()
}

// stuck fails the test, because nothing can happen any more.
func (w *world) stuck() error {
	lines := []string{"managertest: Run waits, but nothing can happen any more:"}
	for _, t := range w.tasks() {
		if t.State != tdf.Archived {
			lines = append(lines, fmt.Sprintf("task %d (%s %s) is %s: %s", t.ID, t.Program, t.Input, t.State, why(t)))
		}
	}
	if len(lines) == 1 {
		lines = append(lines, "no task is left, but Stop does not return true")
	}
	err := errors.New(strings.Join(lines, "\n  "))
	w.t.Errorf("%v", err)
	return err
}

func why(t *tdf.Task) string {
	switch t.State {
	case tdf.Running:
		return "its program never ends, and the task has neither timeout nor end_before"
	case tdf.Open:
		return "its start_after is too late"
	}
	return "its callback does not let it go, or Run does not handle its group"
}
