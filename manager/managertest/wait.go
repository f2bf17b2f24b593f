package managertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/periodics"
)

// finished selects the tasks that a manager must handle.
var finished = redisstate.ListQuery{States: task.SettledStates}

// mostFinished is the maximum number of finished tasks that a wait reads.
const mostFinished = 1000

// stuckAfter is a time in seconds. If no event happens for this time, and if none can follow, the test fails.
const stuckAfter = task.Seconds(60 * 60)

// heartbeat is the time in seconds between two heartbeats of the server. After 10 s without a heartbeat, managers log a
// warning.
const heartbeat = task.Seconds(4)

// mostAttempts is how often a function of a stage may fail before Run ends with its error.
const mostAttempts = 20

// mostInVain is how often in a row the clock may jump to a time at which the server has something to check, but changes
// nothing. Without this limit, checks that the server repeats for ever would hide that nothing can proceed.
const mostInVain = 100

// mostNamed is the maximum number of tasks in an error.
const mostNamed = 20

// A waiter waits for one manager, whose Run calls its functions.
type waiter struct {
	*world
	known   []redisstate.ListEntry // the tasks that were finished when the last wait ended
	failure error                  // ends the next wait; nil if no function has failed too often
}

func (w *waiter) stageFailed(what string, attempts int, err error) {
	if attempts >= mostAttempts {
		w.failure = fmt.Errorf("managertest: %s has failed %d times: %w", what, attempts, err)
	}
}

// wait advances the clock until another task has finished, or until the manager's next round. Without finished tasks
// and without pauses after errors, the next round would have nothing to do. In this case, wait also advances the clock
// beyond this round, from event to event, until a task has finished or no event can follow.
func (w *waiter) wait(ctx context.Context, round, held time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.failure; err != nil {
		w.failure = nil
		return err
	}
	w.called = true
	for until := task.Time(0); ; {
		next, byDue, err := w.settle()
		if err != nil {
			return err
		}
		places, _, err := w.store.Find(w.ctx, finished, mostFinished)
		if err != nil {
			return err
		}
		if !slices.Equal(places, w.known) {
			w.change()
		}
		wake := slices.ContainsFunc(places, func(p redisstate.ListEntry) bool { return !slices.Contains(w.known, p) })
		w.known = places
		if wake || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if until == 0 {
			until = w.nextRound(round, held)
		}
		switch {
		case next < end && (next <= until || len(places) == 0 && held >= task.Forever.Std()):
			w.jump(next, byDue)
		case w.now < until:
			w.set(until)
		case next < end || w.now.Sub(w.changed) < stuckAfter:
			return nil
		default:
			return w.stuck()
		}
	}
}

// advance moves the clock by a span, from event to event.
func (w *world) advance(span task.Seconds) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.called = true
	for until := w.now.Add(span); ; {
		next, byDue, err := w.settle()
		w.check(err)
		switch {
		case next <= until:
			w.jump(next, byDue)
		case w.now < until:
			w.set(until)
		default:
			return
		}
	}
}

// nextRound returns the latest time of a manager's next round. The time between rounds grows while no event happens. If
// it did not grow, an hour without an event would take thousands of rounds.
func (w *world) nextRound(round, held time.Duration) task.Time {
	idle := w.now.Sub(w.changed) / 8
	return w.now.Add(min(max(task.For(round), idle), task.For(held)))
}

// change records that an event happens now.
func (w *world) change() { w.changed, w.inVain = w.now, 0 }

// jump moves the clock to the time of an event. byDue says whether the event is a check of the server.
func (w *world) jump(at task.Time, byDue bool) {
	if byDue {
		w.inVain++
	}
	w.set(at)
}

// settle lets workers and server do all that they can do now, and returns the time of the next event. If no event
// follows, that time is the end of the test's time. byDue says whether the event is a check of the server.
func (w *world) settle() (next task.Time, byDue bool, err error) {
	for {
		if err := w.step(); err != nil {
			return 0, false, err
		}
		due, err := w.due()
		if err != nil {
			return 0, false, err
		}
		next = w.start
		for _, r := range w.runs {
			next = min(next, r.ends)
		}
		due = due.Add(instant) // the server acts only after a deadline has passed
		if byDue = due < next && w.inVain < mostInVain; byDue {
			next = due
		}
		if next > w.now.Add(aboutInstant) {
			return next, byDue, nil
		}
		w.jump(w.now.Add(instant), byDue)
	}
}

// step lets the workers report once. Then it lets the server do a whole round, if it may have anything to do. At last,
// it lets the workers claim tasks.
func (w *world) step() error {
	if err := w.report(); err != nil {
		return err
	}
	due, err := w.due()
	if err != nil {
		return err
	}
	acts := w.called || due <= w.now || w.now.Sub(w.seen) >= heartbeat
	for w.called = false; acts; acts = w.server.IsBehind() {
		w.seen = w.now
		done, err := w.server.RunOnce(w.ctx)
		if err != nil {
			return err
		}
		if done.Total() > 0 {
			w.change()
		}
	}
	return w.claim()
}

// noticed is the time in seconds after which the server has noticed a new periodic.
const noticed = task.Seconds(10)

// due returns when the server next has something to check: a task, or a time of a periodic.
func (w *world) due() (task.Time, error) {
	due, _, err := w.store.NextDue(w.ctx)
	if err != nil {
		return 0, err
	}
	texts, err := periodics.Of(w.store).PeriodicTexts(w.ctx)
	all, _ := task.ParsePeriodics(texts)
	for _, r := range all {
		switch {
		case r.PausedBy != "" || r.Next == 0:
		case r.Next > w.seen:
			due = min(due, r.Next)
		default: // the server's last round has not noticed it
			due = min(due, w.seen.Add(noticed))
		}
	}
	return due, err
}

// stuck fails the test, because no event can happen any more.
func (w *waiter) stuck() error {
	lines := []string{"managertest: Run waits, but no event can happen any more:"}
	left := slices.DeleteFunc(w.tasks(), func(t *task.Task) bool { return t.State == tdf.Archived })
	for _, t := range left[:min(len(left), mostNamed)] {
		what := strings.TrimSpace(fmt.Sprintf("%s %.80s", t.Program, t.Input))
		lines = append(lines, fmt.Sprintf("task %d (%s) is %s: %s", t.ID, what, t.State, w.why(t)))
	}
	switch more := len(left) - mostNamed; {
	case len(left) == 0:
		lines = append(lines, "all tasks are archived, but Stop does not return true")
	case more > 0:
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	err := errors.New(strings.Join(lines, "\n  "))
	w.t.Errorf("%v", err)
	return err
}

// why says why a task does not proceed.
func (w *waiter) why(t *task.Task) string {
	switch t.State {
	case tdf.Running:
		return "the task's program never ends, and the task has neither timeout nor end_before"
	case tdf.Succeeded, tdf.Failed, tdf.TimedOut, tdf.Expired:
		return "the task's callback does not return nil, the function after its stage does not return nil, or Run " +
			"does not handle the task's group"
	}
	obstacles, err := w.obstacles(t)
	w.check(err)
	return strings.Join(obstacles, "; ")
}

// obstacles says what keeps an open task from its start.
func (w *world) obstacles(t *task.Task) (all []string, err error) {
	paused, err := w.store.Limits.Paused(w.ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range paused {
		if _, holds := (task.Paused{p.Pausable}).Holds(&t.Properties); holds {
			all = append(all, "pause: "+p.Text()+", by "+p.By)
		}
	}
	limits, err := w.store.Limits.LimitUses(w.ctx, t.LimitKey) // the key "" has no limit
	if err != nil {
		return nil, err
	}
	if limits[0].Limited {
		all = append(all, fmt.Sprintf("limit: key %q, %s", t.LimitKey, limits[0].Limit.Text()))
	}
	if from := t.ClaimableFrom(); from > w.now {
		all = append(all, "start: not before "+from.Std().UTC().Format(time.DateTime))
	}
	if !t.Waits() {
		return all, nil
	}
	pending, err := dependencies.Pending(w.ctx, w.store, t.ID, mostNamed)
	for _, d := range pending {
		all = append(all, "dependency: "+d.String())
	}
	return all, err
}
