package admin

import (
	"context"

	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// Dependents are the tasks that wait for a task.
type Dependents struct {
	Tasks []Dependent // the first ones
	IDs   []int64     // more of the first ones
	Total int64       // how many there are, with some that may have been cancelled
}

// A Dependent is a task that waits for another one.
type Dependent struct {
	*manager.Task      // a summary
	Any           bool // any outcome will do
	Group         bool // it waits for the whole group of the other task
}

// namedDependents is the largest number of ids in [Dependents], for a task and for its group.
const namedDependents = 200

// Dependents returns tasks that wait for a task, or for its group: the first ones, of which Tasks has at most the given
// number. Once the task is finished, no task waits for it any more. If owner is not "", the tasks of others do not
// exist, and those after the first ones do not count.
func (a *Admin) Dependents(ctx context.Context, t *manager.Task, owner string, most int) (found Dependents, err error) {
	all, total, err := dependencies.WaitingFor(ctx, a.redis(), t.ID, t.Group, namedDependents)
	if err != nil {
		return found, err
	}
	var ids []int64
	for _, w := range all {
		ids = append(ids, w.ID)
	}
	read := len(ids)
	if owner == "" {
		read, found.IDs, found.Total = min(read, most), ids, total
	}
	stored, err := a.redis().Read(ctx, ids[:read], redisstate.Want{Fields: redisstate.Facts})
	for i, x := range stored {
		if owner != "" {
			if x.Task == nil || x.Task.Owner != owner {
				continue
			}
			found.IDs, found.Total = append(found.IDs, ids[i]), found.Total+1
		}
		waits := x.Task != nil && x.Task.Round == all[i].Round && !x.Task.State.Finished()
		if waits && (owner == "" || len(found.IDs) <= most) {
			task := manager.TaskOf(x.Task, false)
			found.Tasks = append(found.Tasks, Dependent{task, all[i].Any, all[i].Group})
		}
	}
	return found, err
}
