package manager

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
)

// Limits for the tasks in memory, and for the work in one round.
const (
	idsPerPage    = 1024
	leastBatch    = 64       // this many tasks are read together at first, and more if callbacks are quick
	tasksPerBatch = 512      // at most these tasks are read together
	bytesPerBatch = 32 << 20 // a larger task is read alone
	// tasks that wait since an earlier round do not count, so they cannot keep out later tasks
	tasksPerList = 2 * tasksPerBatch
)

// present holds the data of the present round.
type present struct {
	now      task.Time
	summary  Summary
	left     int            // the number of tasks that have left the lists of finished tasks
	moved    map[int64]bool // the tasks that the steps of other tasks have moved
	cut      bool           // whether tasks remain for the next round because this round reached tasksPerList
	full     bool           // whether tasks remain because too many callbacks of their group run
	patience time.Duration  // how long the round may wait for a callback
}

func (r *run) round(ctx context.Context) (Summary, error) {
	r.rounds++
	r.present = present{summary: Summary{Round: r.rounds}, moved: map[int64]bool{}, patience: patience}
	if err := r.begin(ctx); err != nil {
		return r.summary, err
	}
	if err := r.lists(ctx); err != nil {
		return r.summary, err
	}
	if err := r.drain(ctx, false); err != nil {
		return r.summary, err
	}
	if r.handling.urgent {
		if _, err := r.handling.lease(ctx, nil); err != nil {
			return r.summary, err
		}
	}
	if !r.cut && !r.full {
		r.backoff.forget(r.rounds)
		r.handling.forget(r.rounds)
	}
	r.again = r.cut || r.summary.Archived > 0 && r.backoff.anyNotYet()
	r.summary.Running, r.summary.GivenUp = len(r.calls.running), r.backoff.givenUp()
	counts, err := r.in().Store.Counts(ctx, r.Groups...)
	r.summary.Counts = counts
	return r.summary, err
}

// begin reads the clock, and what servers and other managers say.
func (r *run) begin(ctx context.Context) (err error) {
	if r.now, err = r.in().Store.Now(ctx); err != nil {
		return err
	}
	if err := r.server.look(ctx, r.now); err != nil {
		return err
	}
	said, err := r.handling.say(ctx, r.now)
	if err != nil || !said {
		return err
	}
	return r.refresh(ctx)
}

// lists handles the lists of finished tasks.
func (r *run) lists(ctx context.Context) error {
	if r.InOrder {
		for _, group := range r.scope {
			if err := r.inOrder(ctx, group); err != nil {
				return err
			}
		}
		return nil
	}
	for _, state := range listing.Settled {
		for _, group := range r.scope {
			if err := r.list(ctx, state, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// isHeld reports whether the callback of a task must not be called in this round.
func (r *run) isHeld(id int64) bool {
	if r.Skip != nil && r.Skip(id) || r.handling.sees(id, r.rounds) {
		return true
	}
	held := r.backoff.mustWait(id, r.rounds, r.now)
	if r.calls.running[id] != nil || r.batch.has(id) {
		return true
	}
	if held {
		r.summary.Waiting++
	}
	return held
}

// list handles one list of finished tasks. It skips tasks whose callbacks must not be called yet.
func (r *run) list(ctx context.Context, state tdf.State, group string) error {
	s := r.slots[group]
	var offset int64
	for taken := 0; ; {
		ids, err := r.in().Store.List(ctx, state, group, offset, idsPerPage)
		if err != nil || len(ids) == 0 {
			return err
		}
		before := r.left
		due := slices.DeleteFunc(slices.Clone(ids), r.isHeld)
		for len(due) > 0 {
			next := r.backoff.upTo(due, r.most(s), tasksPerList-taken)
			if len(next) == 0 {
				r.cut = true
				return nil
			}
			leased, err := r.handling.lease(ctx, next)
			if err != nil {
				return err
			}
			if len(leased) == 0 {
				due = due[len(next):]
				continue
			}
			tasks, err := r.read(ctx, tasksOf(leased))
			if err != nil {
				return err
			}
			leased = leased[:len(tasks)] // a lease of a task that was not read is used in the next turn
			taken += r.backoff.countNew(tasksOf(leased))
			due = due[1+slices.Index(due, leased[len(leased)-1].Task):]
			r.recall(leased, tasks)
			begun := time.Now()
			if more, err := r.offer(ctx, state, tasks, s); !more || err != nil {
				return err
			}
			s.learn(len(tasks), time.Since(begun))
		}
		offset = max(0, offset+int64(len(ids)-(r.left-before)))
	}
}

// sharedBatch is the number of tasks to lease together if another manager handles the same tasks.
const sharedBatch = 4

// most returns how many tasks to lease and read together.
func (r *run) most(s *slots) int {
	if r.handling.shares() {
		return min(s.batch(), max(sharedBatch, s.size-s.used))
	}
	return s.batch()
}

func tasksOf(leased []callbacks.Failure) []int64 {
	ids := make([]int64, len(leased))
	for i := range leased {
		ids[i] = leased[i].Task
	}
	return ids
}

// read reads the first of these tasks. A missing task is nil.
func (r *run) read(ctx context.Context, ids []int64) ([]*task.Task, error) {
	stored, err := r.in().Store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Whole, MaxBytes: bytesPerBatch})
	tasks := make([]*task.Task, len(stored))
	for i := range stored {
		tasks[i] = stored[i].Task
	}
	return tasks, err
}

// offer calls the callbacks of tasks. It reports whether the round can offer more tasks of this group.
func (r *run) offer(ctx context.Context, state tdf.State, tasks []*task.Task, s *slots) (more bool, err error) {
	for _, t := range tasks {
		if t == nil || t.State != state {
			continue // another manager has moved the task
		}
		foreign, err := r.handling.isForeign(ctx, t, r.rounds)
		if err != nil {
			return false, err
		}
		if foreign || r.isGivenUp(t.ID) {
			r.handling.release(t.ID, true)
			continue
		}
		free, err := r.slot(ctx, s)
		switch {
		case err != nil:
			return false, err
		case !free:
			r.full = true
			return false, context.Cause(ctx)
		case ctx.Err() != nil:
			return false, r.leave(ctx)
		case !r.moved[t.ID]:
			r.start(ctx, &Finished{Task: TaskOf(t, true)}, s)
		}
	}
	if r.Concurrency == 0 {
		err = r.drain(ctx, true)
	}
	return true, cmp.Or(err, context.Cause(ctx))
}

// leave archives the tasks whose callbacks have returned, and returns the cause of ctx, which has ended.
func (r *run) leave(ctx context.Context) error {
	return cmp.Or(r.drain(ctx, true), context.Cause(ctx))
}

func (r *run) isGivenUp(id int64) bool {
	again := r.backoff[id]
	return again != nil && again.givenUp
}
