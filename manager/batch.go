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

// A batch collects tasks whose callbacks have returned nil. One call to Redis archives all tasks of the batch. For each
// task, one atomic step archives the task and opens its follow-ups. Follow-ups are the tasks that the callback passed
// to [Finished.Open].
type batch struct {
	*round
	alone  []*Finished // tasks without follow-ups
	others []*Finished // tasks with follow-ups
	since  time.Time   // when the first task was added
}

// longestWait limits how long a task waits in a batch. A long wait is bad, because after a crash the callbacks of all
// waiting tasks run again.
const longestWait = time.Second

func (b *batch) overdue() bool {
	return len(b.alone)+len(b.others) > 0 && time.Since(b.since) > longestWait
}

// call calls a task's callback, and handles the callback's error.
func (b *batch) call(ctx context.Context, t *Finished) {
	err := b.callback(ctx, t)
	switch {
	case errors.Is(err, ErrNotYet):
		b.backoff.notYet(t.ID, b.rounds)
		b.summary.Waiting++
	case err != nil && ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())):
		// The callback ended because ctx ended. The next Run calls it again.
	case err != nil:
		b.later(ctx, err, t)
	default:
		b.take(t)
	}
}

func (b *batch) take(t *Finished) {
	if len(b.alone)+len(b.others) == 0 {
		b.since = time.Now()
	}
	if len(t.opens) > 0 {
		b.others = append(b.others, t)
	} else {
		b.alone = append(b.alone, t)
	}
}

func (b *batch) callback(ctx context.Context, t *Finished) (err error) {
	f := b.forState(t.State)
	if f == nil {
		b.warn(t)
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("callback panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if err := f(ctx, t); err != nil {
		return err
	}
	if err := t.prepare(); err != nil {
		return err
	}
	t.opens, err = b.scatter(ctx, t.opens)
	return err
}

// warn logs a warning for a task that is archived without a callback. For a task that succeeded, it logs nothing.
func (b *batch) warn(t *Finished) {
	if t.State == tdf.Succeeded {
		return
	}
	text, _, _ := strings.Cut(strings.TrimSpace(t.Error()), "\n")
	b.log.Warn("task archived without a callback", "task", t.ID, "program", t.Program, "group", t.Group,
		"outcome", t.Outcome, "error", text)
}

// archive archives the tasks of the batch. It begins with tasks without follow-ups, because a full Redis can archive
// only these. If ctx ends, archive continues for up to archivingBound.
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

func (b *batch) apply(ctx context.Context, tasks []*Finished) error {
	if len(tasks) == 0 {
		return nil
	}
	units := make([]redisstate.Unit, len(tasks))
	for i, t := range tasks {
		m, err := t.task.Archive()
		if err != nil {
			return err // never happens, because the task was read in a state from which it can be archived
		}
		units[i] = redisstate.Unit{Moves: []tdf.Move{m}, Open: t.opens}
	}
	outcomes, err := b.store.Apply(ctx, b.name, units...)
	for i, o := range outcomes {
		b.conclude(ctx, tasks[i], o)
	}
	if errors.Is(err, redisstate.ErrFull) {
		b.later(ctx, err, tasks[len(outcomes):]...)
		return nil
	}
	return err
}

func (b *batch) conclude(ctx context.Context, t *Finished, o redisstate.Outcome) {
	moved := errors.As(o.Err, new(*tdf.StateError))
	if o.Err != nil && !moved {
		b.later(ctx, fmt.Errorf("archive the task: %w", o.Err), t)
		return
	}
	delete(b.backoff, t.ID)
	if moved {
		b.log.Info("task not archived, and no follow-up opened: the task's state changed after its callback started", "task", t.ID, "program", t.Program, "error", o.Err)
		return
	}
	b.summary.Archived++
	b.summary.Opened += len(o.IDs) - o.Held()
}

// lingering returns a context that ends when the time archivingBound has passed since the end of ctx.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(archivingBound, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() { stop(); cancel(nil) }
}

// archivingBound is how long a manager tries to archive tasks after ctx has ended.
const archivingBound = 10 * time.Second
