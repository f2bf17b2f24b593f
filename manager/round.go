package manager

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// Bounds of what is in memory, and of what happens before the end of a round.
const (
	idsPerPage    = 1000
	tasksPerBatch = 64 // read together: an output may have 1 MiB
	tasksPerList  = 16 * tasksPerBatch
)

// A round is the work on one.
type round struct {
	*run
	now     tdf.Time
	summary Summary
	cut     bool // there is more to do than one round does
}

func (r *run) round(ctx context.Context) (Summary, error) {
	r.rounds++
	o := &round{run: r, summary: Summary{Round: r.rounds}}
	var err error
	if o.now, err = r.store.Now(ctx); err != nil {
		return o.summary, err
	}
	if err := r.server.look(ctx, o.now); err != nil {
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
		r.held.forget(r.rounds)
	}
	r.again = o.cut || o.summary.Archived > 0 && r.held.waiting()
	o.summary.Counts, err = r.store.Counts(ctx, r.Groups...)
	return o.summary, err
}

// list goes through one list, past what has to wait.
func (o *round) list(ctx context.Context, state tdf.State, group string) error {
	var offset int64
	for taken := 0; ; {
		ids, err := o.store.List(ctx, state, group, offset, idsPerPage)
		if err != nil || len(ids) == 0 {
			return err
		}
		before := o.summary.Archived
		due := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return o.held.meets(id, o.rounds, o.now) })
		o.summary.Held += len(ids) - len(due)
		for batch := range slices.Chunk(due, tasksPerBatch) {
			if taken += len(batch); taken > tasksPerList {
				o.cut = true
				return nil
			}
			if err := o.batch(ctx, state, batch); err != nil {
				return err
			}
		}
		offset += int64(len(ids) - (o.summary.Archived - before))
	}
}

// batch reads some tasks, calls their callbacks, and archives those that may go.
func (o *round) batch(ctx context.Context, state tdf.State, ids []int64) error {
	tasks, err := o.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Whole})
	if err != nil {
		return err
	}
	b := batch{round: o}
	for i := range tasks {
		t := tasks[i].Task
		if t == nil || t.State != state {
			continue // somebody was quicker
		}
		if ctx.Err() != nil {
			break
		}
		b.call(ctx, &Task{Task: t})
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

// hold leaves a task where it is for a while.
func (o *round) hold(t *Task, err error) {
	pause := o.held.fail(t.ID, o.rounds, o.now)
	o.summary.Held++
	o.log.Error("a callback failed; it will be called again", "task", t.ID, "program", t.Program,
		"state", t.State, "seconds", float64(pause), "error", err)
}
