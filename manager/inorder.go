package manager

import (
	"cmp"
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// unarchived are the states of the tasks whose callbacks have not returned nil.
var unarchived = slices.DeleteFunc(slices.Clone(task.States), func(s tdf.State) bool { return s == tdf.Archived })

// inOrder calls the callbacks of a group in the order of the ids. It stops at the first task that is not finished, or
// whose callback must be called again. It passes tasks whose callbacks have failed for good.
func (r *run) inOrder(ctx context.Context, group string) error {
	query := redisstate.ListQuery{States: unarchived, Group: group, OldestFirst: true}
	for {
		entries, last, err := r.in().Store.Find(ctx, query, r.slots[group].batch())
		if err != nil || len(entries) == 0 {
			return err
		}
		ids := redisstate.IDsOf(entries)
		if r.Skip != nil {
			ids = slices.DeleteFunc(ids, r.Skip)
		}
		leased, err := r.handling.lease(ctx, ids)
		if err != nil || len(leased) == 0 && len(ids) > 0 {
			return err
		}
		tasks, err := r.read(ctx, tasksOf(leased))
		if err != nil || len(tasks) == 0 && len(ids) > 0 {
			return err
		}
		r.recall(leased[:len(tasks)], tasks)
		for i, t := range tasks {
			if leased[i].Task != ids[i] { // another manager calls the callback of the task before
				return nil
			}
			if next, err := r.next(ctx, t, r.slots[group]); !next || err != nil {
				return err
			}
		}
		if last && len(tasks) == len(ids) || len(leased) < len(ids) {
			return nil
		}
		query.Behind = &entries[len(entries)-1]
		if len(tasks) < len(ids) {
			query.Behind = &entries[slices.IndexFunc(entries, func(e redisstate.ListEntry) bool {
				id, ok := e.ID()
				return ok && id == ids[len(tasks)-1]
			})]
		}
	}
}

// next calls the callback of a task and waits for it. It reports whether the callback of the next task may be called.
func (r *run) next(ctx context.Context, t *task.Task, s *slots) (bool, error) {
	if t == nil || t.State == tdf.Archived {
		return true, nil
	}
	held := r.isHeld(t.ID)
	if r.isGivenUp(t.ID) {
		return true, nil
	}
	if held || !t.State.Settled() {
		return false, nil
	}
	free, err := r.slot(ctx, s)
	if err != nil || !free || ctx.Err() != nil {
		r.full = true
		return false, cmp.Or(err, context.Cause(ctx))
	}
	r.start(ctx, &Finished{Task: TaskOf(t, true)}, s)
	ended, err := r.until(ctx, r.waits(), func() bool { return r.calls.running[t.ID] == nil })
	if err != nil || !ended {
		r.full = true
		return false, err
	}
	again := r.backoff[t.ID]
	return again == nil || again.givenUp, context.Cause(ctx)
}
