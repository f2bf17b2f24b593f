package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A batch collects tasks whose callbacks let them go. They are archived together, but each
// by itself with what its callback opened.
type batch struct {
	*round
	alone  []*Task // without follow-ups
	others []*Task
	since  time.Time // of the first task
}

// longestWait bounds for how long a callback that has run would run again after a crash.
const longestWait = time.Second

func (b *batch) overdue() bool {
	return len(b.alone)+len(b.others) > 0 && time.Since(b.since) > longestWait
}

// call runs a task's callback and puts the task where that says.
func (b *batch) call(ctx context.Context, t *Task) {
	err := b.callback(ctx, t)
	switch {
	case errors.Is(err, ErrNotYet):
		b.held.notYet(t.ID, b.rounds)
		b.summary.Held++
	case err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		// It was told to stop, and did.
	case err != nil:
		b.hold(t, err)
	default:
		b.take(t)
	}
}

func (b *batch) take(t *Task) {
	if len(b.alone)+len(b.others) == 0 {
		b.since = time.Now()
	}
	if len(t.followUps) > 0 {
		b.others = append(b.others, t)
	} else {
		b.alone = append(b.alone, t)
	}
}

func (b *batch) callback(ctx context.Context, t *Task) (err error) {
	f := b.of(t.State)
	if f == nil {
		b.unheard(t)
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the callback panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if err := f(ctx, t); err != nil {
		return err
	}
	if err := t.checkFollowUps(); err != nil {
		return err
	}
	t.followUps, err = b.scatter(ctx, t.followUps)
	return err
}

// unheard tells of a task that did not succeed, and that no callback asks for.
func (b *batch) unheard(t *Task) {
	if t.State == tdf.Succeeded {
		return
	}
	text, _, _ := strings.Cut(strings.TrimSpace(t.LastError()), "\n")
	b.log.Warn("archived without a callback", "task", t.ID, "program", t.Program, "group", t.Group,
		"outcome", t.Outcome, "error", text)
}

// archive archives what was taken. Those without follow-ups go first: they can go even when
// Redis is full. It is done also when ctx has ended, for then it is all there is left to do.
func (b *batch) archive(ctx context.Context) error {
	ctx, cancel := lingering(ctx)
	defer cancel()
	alone, others := b.alone, b.others
	b.alone, b.others = nil, nil
	if err := b.apply(ctx, alone); err != nil {
		return err
	}
	return b.apply(ctx, others)
}

func (b *batch) apply(ctx context.Context, tasks []*Task) error {
	if len(tasks) == 0 {
		return nil
	}
	units := make([]redisstate.Unit, len(tasks))
	for i, t := range tasks {
		m, err := t.Archive()
		if err != nil {
			return err // it was read in a state that can be archived
		}
		units[i] = redisstate.Unit{Moves: []tdf.Move{m}, Open: t.followUps}
	}
	outcomes, err := b.store.Apply(ctx, b.name, units...)
	for i, o := range outcomes {
		b.conclude(tasks[i], o)
	}
	if errors.Is(err, redisstate.ErrFull) {
		for _, t := range tasks[len(outcomes):] {
			b.hold(t, err)
		}
		return nil
	}
	return err
}

func (b *batch) conclude(t *Task, o redisstate.Outcome) {
	delete(b.held, t.ID)
	if o.Err != nil {
		b.log.Info("not archived, and nothing opened: it is not where its callback saw it", "task", t.ID, "program", t.Program, "found", o.Err)
		return
	}
	b.summary.Archived++
	b.summary.Opened += len(o.IDs)
}

// lingering returns a context that outlives ctx for a while.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(lastWords, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() { stop(); cancel(nil) }
}

// lastWords is how long a manager that is told to stop tries to archive what was done.
const lastWords = 10 * time.Second
