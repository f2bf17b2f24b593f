package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A batch collects tasks whose callbacks have returned nil. One call to Redis archives all tasks of the batch. For each
// task, one atomic step archives the task and opens its follow-ups. Follow-ups are the tasks that the callback passed
// to Open. A task whose step names other tasks gets a call of its own, because no task may occur twice in a call.
type batch struct {
	ids    map[int64]bool
	alone  []*Finished // tasks without follow-ups
	others []*Finished // tasks with follow-ups
	naming []*Finished // tasks whose steps name other tasks
	bytes  int         // the size of their outputs
	since  time.Time   // when the first task was added
}

// longestWait limits how long a task waits in a batch. A long wait is bad, because after a crash the callbacks of all
// waiting tasks run again.
const longestWait = time.Second

// left returns how long the batch can still wait.
func (b *batch) left() time.Duration {
	switch {
	case len(b.ids) == 0:
		return task.Forever.Std()
	case len(b.naming) > 0 || len(b.ids) >= tasksPerBatch || b.bytes >= bytesPerBatch:
		return 0
	}
	return max(0, longestWait-time.Since(b.since))
}

func (b *batch) has(id int64) bool { return b.ids[id] }

func (b *batch) take(t *Finished) {
	if len(b.ids) == 0 {
		*b = batch{ids: map[int64]bool{}, since: time.Now()}
	}
	b.ids[t.ID] = true
	b.bytes += len(t.Output()) + len(t.Stderr())
	switch {
	case len(t.actions) > 0 || t.decide != "":
		b.naming = append(b.naming, t)
	case len(t.definitions) > 0:
		b.others = append(b.others, t)
	default:
		b.alone = append(b.alone, t)
	}
}

// mostUncalled is the largest number of such warnings.
const mostUncalled = 1000

// warn logs a warning for the first task of a group and a state that is archived without a callback. For a task that
// succeeded, it logs nothing.
func (r *run) warn(t *Finished) {
	key := [2]string{t.Group, string(t.State)}
	if t.State == tdf.Succeeded || r.uncalled[key] || len(r.uncalled) >= mostUncalled {
		return
	}
	r.uncalled[key] = true
	text, _, _ := strings.Cut(strings.TrimSpace(t.Stderr()), "\n")
	r.in().Log.Warn("tasks of this group and state are archived without a callback; this is the first of them",
		"task", t.ID, "state", t.State, "program", t.Program, "group", t.Group, "outcome", t.Outcome, "error", text)
}

// archive archives the tasks of the batch. It begins with tasks without follow-ups, because a full Redis can archive
// only these. If ctx ends, archive continues for up to archivingBound.
func (r *run) archive(ctx context.Context) error {
	ctx, cancel := lingering(ctx)
	defer cancel()
	b := r.batch
	r.batch = batch{}
	if err := r.apply(ctx, b.alone); err != nil {
		return err
	}
	if err := r.apply(ctx, b.others); err != nil {
		return err
	}
	for i := range b.naming {
		if err := r.apply(ctx, b.naming[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) apply(ctx context.Context, tasks []*Finished) error {
	if len(tasks) == 0 {
		return nil
	}
	units := make([]redisstate.Unit, len(tasks))
	for i, t := range tasks {
		units[i] = t.unit
	}
	outcomes, err := r.in().Store.Apply(ctx, r.in().Name, units...)
	var repaired []int64
	for i, o := range outcomes {
		if again := r.backoff[tasks[i].ID]; again != nil && again.attempts > 0 && o.Err == nil {
			repaired = append(repaired, tasks[i].ID)
		}
		r.archived(ctx, tasks[i], o)
	}
	_ = r.in().Store.Callbacks.EndFailures(ctx, repaired...) // the server removes records of tasks that are archived
	if errors.Is(err, conn.ErrFull) {
		r.later(ctx, err, tasks[len(outcomes):]...)
		return nil
	}
	return err
}

// archived handles the outcome of a task's step.
func (r *run) archived(ctx context.Context, t *Finished, o redisstate.Outcome) {
	found := new(tdf.StateError)
	moved := errors.As(o.Err, &found) && found.ID == t.ID // the task itself is the first of a unit
	if o.Err != nil && !moved {
		r.later(ctx, fmt.Errorf("step of the callback: %w", t.refusal(o.Refused)), t)
		return
	}
	delete(r.backoff, t.ID)
	r.handling.release(t.ID, moved)
	if moved {
		r.in().Log.Info("task not archived, and no follow-up opened: the task's state changed after its callback started",
			"task", t.ID, "program", t.Program, "error", o.Err)
		return
	}
	r.summary.Archived++
	r.summary.Opened += len(o.IDs) - o.Held()
	r.left++
	for _, a := range t.actions {
		r.recordMoved(a)
	}
}

// recordMoved records that a step has moved another task.
func (r *run) recordMoved(a stepAction) {
	switch a.Verb {
	case rules.VerbRequire:
		return
	case rules.VerbArchive:
		r.summary.Archived++
		r.left++
	case rules.VerbReopen, rules.VerbRemove: // too many only make the round read some tasks again
		r.left++
	}
	r.moved[a.task.ID] = true
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
