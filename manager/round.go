package manager

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// Limits for the tasks in memory, and for the work in one round.
const (
	idsPerPage    = 1000
	tasksPerBatch = 64       // at most these tasks are read together
	bytesPerBatch = 32 << 20 // a larger task is read alone
	// tasks that wait since an earlier round do not count, so they cannot keep out later tasks
	tasksPerList = 16 * tasksPerBatch
)

// A round holds the data of one round of Run.
type round struct {
	*run
	now     tdf.Time
	summary Summary
	left    int            // the number of tasks that have left the lists of finished tasks
	moved   map[int64]bool // the tasks that the steps of other tasks have moved
	cut     bool           // whether tasks remain for the next round because this round reached tasksPerList
}

func (r *run) round(ctx context.Context) (Summary, error) {
	r.rounds++
	o := &round{run: r, summary: Summary{Round: r.rounds}, moved: map[int64]bool{}}
	var err error
	if o.now, err = r.store.Now(ctx); err != nil {
		return o.summary, err
	}
	if err := r.server.look(ctx, o.now); err != nil {
		return o.summary, err
	}
	if err := r.handling.say(ctx, o.now); err != nil {
		return o.summary, err
	}
	for _, state := range listing.Settled {
		for _, group := range r.scope {
			if err := o.list(ctx, state, group); err != nil {
				return o.summary, err
			}
		}
	}
	if !o.cut {
		r.backoff.forget(r.rounds)
		r.handling.forget(r.rounds)
	}
	r.again = o.cut || o.summary.Archived > 0 && r.backoff.anyNotYet()
	counts, err := r.store.Counts(ctx, r.Groups...)
	o.summary.Counts = counts
	return o.summary, err
}

// list handles one list of finished tasks. It skips tasks whose callbacks must not be called yet.
func (o *round) list(ctx context.Context, state tdf.State, group string) error {
	var offset int64
	for taken := 0; ; {
		ids, err := o.store.List(ctx, state, group, offset, idsPerPage)
		if err != nil || len(ids) == 0 {
			return err
		}
		before := o.left
		own := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return o.handling.sees(id, o.rounds) })
		due := slices.DeleteFunc(slices.Clone(own), func(id int64) bool {
			return o.backoff.mustWait(id, o.rounds, o.now)
		})
		o.summary.Waiting += len(own) - len(due)
		for len(due) > 0 {
			next := o.backoff.upTo(due, tasksPerBatch, tasksPerList-taken)
			if len(next) == 0 {
				o.cut = true
				return nil
			}
			tasks, err := o.store.Read(ctx, next, redisstate.Want{Fields: redisstate.Whole, MaxBytes: bytesPerBatch})
			if err != nil {
				return err
			}
			taken, due = taken+o.backoff.countNew(next[:len(tasks)]), due[len(tasks):]
			if err := o.batch(ctx, state, tasks); err != nil {
				return err
			}
		}
		offset = max(0, offset+int64(len(ids)-(o.left-before)))
	}
}

// batch calls the callbacks of tasks, and archives the tasks whose callbacks return nil.
func (o *round) batch(ctx context.Context, state tdf.State, tasks []redisstate.Stored) error {
	b := batch{round: o}
	for i := range tasks {
		t := tasks[i].Task
		if t == nil || t.State != state || o.moved[t.ID] {
			continue // another manager or the step of another task has moved the task
		}
		if ctx.Err() != nil {
			break
		}
		foreign, err := o.handling.isForeign(ctx, t, o.rounds)
		if err != nil {
			return err
		}
		if foreign {
			continue
		}
		b.call(ctx, &Finished{Task: TaskOf(t, true)})
		if b.overdue() {
			if err := b.archive(ctx); err != nil {
				return err
			}
		}
	}
	if err := b.archive(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// later makes Run call the callbacks of these tasks again after a pause. The pause begins at the present time, and not
// at the beginning of the round, which may be long ago.
func (o *round) later(ctx context.Context, err error, tasks ...*Finished) {
	now, unknown := o.store.Now(ctx)
	if unknown != nil { // ctx has ended
		now = o.now
	}
	for _, t := range tasks {
		pause := o.backoff.addFailure(t.ID, o.rounds, now)
		o.summary.Waiting++
		o.log.Error("callback failed; it is called again after a pause", "task", t.ID, "program", t.Program,
			"state", t.State, "pause_seconds", float64(pause), "error", err)
	}
}
