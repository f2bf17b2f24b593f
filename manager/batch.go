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
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A batch collects tasks whose callbacks have returned nil. One call to Redis archives all tasks of the batch. For each
// task, one atomic step archives the task and opens its follow-ups. Follow-ups are the tasks that the callback passed
// to Open. A task whose step names other tasks gets a call of its own, because no task may occur twice in a call.
type batch struct {
	*round
	alone  []*Finished // tasks without follow-ups
	others []*Finished // tasks with follow-ups
	naming []*Finished // tasks whose steps name other tasks
	since  time.Time   // when the first task was added
}

// longestWait limits how long a task waits in a batch. A long wait is bad, because after a crash the callbacks of all
// waiting tasks run again.
const longestWait = time.Second

func (b *batch) overdue() bool {
	return len(b.naming) > 0 || len(b.alone)+len(b.others) > 0 && time.Since(b.since) > longestWait
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
	switch {
	case len(t.actions) > 0 || t.decide != "":
		b.naming = append(b.naming, t)
	case len(t.definitions) > 0:
		b.others = append(b.others, t)
	default:
		b.alone = append(b.alone, t)
	}
}

func (b *batch) callback(ctx context.Context, t *Finished) (err error) {
	if f := b.forState(t.State); f == nil {
		b.warn(t)
	} else if err := recovered(ctx, f, t); err != nil {
		return err
	}
	if t.unit, err = b.unit(ctx, &t.Step, t.Task); err != nil {
		return fmt.Errorf("step of the callback: %w", err)
	}
	return nil
}

// recovered calls a callback. If the callback panics, recovered returns an error.
func recovered(ctx context.Context, f func(context.Context, *Finished) error, t *Finished) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("callback panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return f(ctx, t)
}

// mostUncalled is the largest number of such warnings.
const mostUncalled = 1000

// warn logs a warning for the first task of a group and a state that is archived without a callback. For a task that
// succeeded, it logs nothing.
func (b *batch) warn(t *Finished) {
	key := [2]string{t.Group, string(t.State)}
	if t.State == tdf.Succeeded || b.uncalled[key] || len(b.uncalled) >= mostUncalled {
		return
	}
	b.uncalled[key] = true
	text, _, _ := strings.Cut(strings.TrimSpace(t.Error()), "\n")
	b.log.Warn("tasks of this state are archived without a callback, because it is nil; this is the first one", "task", t.ID, "program", t.Program, "group", t.Group,
		"outcome", t.Outcome, "error", text)
}

// archive archives the tasks of the batch. It begins with tasks without follow-ups, because a full Redis can archive
// only these. If ctx ends, archive continues for up to archivingBound.
func (b *batch) archive(ctx context.Context) error {
	ctx, cancel := lingering(ctx)
	defer cancel()
	alone, others, naming := b.alone, b.others, b.naming
	b.alone, b.others, b.naming = nil, nil, nil
	if err := b.apply(ctx, alone); err != nil {
		return err
	}
	if err := b.apply(ctx, others); err != nil {
		return err
	}
	for i := range naming {
		if err := b.apply(ctx, naming[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) apply(ctx context.Context, tasks []*Finished) error {
	if len(tasks) == 0 {
		return nil
	}
	units := make([]redisstate.Unit, len(tasks))
	for i, t := range tasks {
		units[i] = t.unit
	}
	outcomes, err := b.store.Apply(ctx, b.name, units...)
	for i, o := range outcomes {
		b.conclude(ctx, tasks[i], o)
	}
	if errors.Is(err, conn.ErrFull) {
		b.later(ctx, err, tasks[len(outcomes):]...)
		return nil
	}
	return err
}

func (b *batch) conclude(ctx context.Context, t *Finished, o redisstate.Outcome) {
	found := new(tdf.StateError)
	moved := errors.As(o.Err, &found) && found.ID == t.ID // the task itself is the first of a unit
	if o.Err != nil && !moved {
		b.later(ctx, fmt.Errorf("step of the callback: %w", t.refusal(o.Refused)), t)
		return
	}
	delete(b.backoff, t.ID)
	if moved {
		b.log.Info("task not archived, and no follow-up opened: the task's state changed after its callback started",
			"task", t.ID, "program", t.Program, "error", o.Err)
		return
	}
	b.summary.Archived++
	b.summary.Opened += len(o.IDs) - o.Held()
	b.left++
	for _, a := range t.actions {
		b.recordMoved(a)
	}
}

// recordMoved records that a step has moved another task.
func (o *round) recordMoved(a stepAction) {
	switch a.Verb {
	case tdf.VerbRequire:
		return
	case tdf.VerbArchive:
		o.summary.Archived++
		o.left++
	case tdf.VerbReopen, tdf.VerbRemove: // too many only make the round read some tasks again
		o.left++
	}
	o.moved[a.task.ID] = true
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
