package dependencies

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Limits for one page of EachDependency.
const (
	dependenciesPerPage   = 64
	dependencyBytesAtOnce = 8 << 20
)

// EachDependency calls a function for each task that the given task waited for. The tasks of after and after_any come
// first, and then the tasks of the groups. EachDependency reads the last outputs and the last results of these tasks,
// page by page. When the function returns false, EachDependency calls it no more. It returns the number of tasks for
// which it has not called the function.
//
// If a task does not exist any more, its Stored.Task is nil.
func (l Links) EachDependency(ctx context.Context, id int64, each func(redisstate.Stored) bool) (left int, err error) {
	values, err := conn.Ask(ctx, l.s.Conn, fmt.Sprintf("read the dependencies of task %d", id),
		func(r redis.Cmdable) *redis.SliceCmd {
			return r.HMGet(ctx, l.s.Keys.Task(id), linkFields...)
		})
	if err != nil {
		return 0, err
	}
	reading := true
	page := func(ids []int64) error {
		for len(ids) > 0 && reading {
			err := pool.Part(ctx, func(ctx context.Context) (kept int64, err error) {
				stored, err := l.readDependencies(ctx, ids[:min(len(ids), dependenciesPerPage)])
				for i := 0; i < len(stored) && reading; i++ {
					ids, reading = ids[1:], each(stored[i])
				}
				return 0, err
			})
			if err != nil {
				return err
			}
		}
		left += len(ids)
		return nil
	}
	tasks := slices.Concat(task.ParseIDs(conn.Text(values[0])), task.ParseIDs(conn.Text(values[1])))
	slices.Sort(tasks)
	if err := page(slices.Compact(tasks)); err != nil {
		return left, err
	}
	for _, group := range values[2:] {
		if name := conn.Text(group); name != "" {
			if err := l.eachOfGroup(ctx, name, page); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}

func (l Links) readDependencies(ctx context.Context, ids []int64) ([]redisstate.Stored, error) {
	return l.s.Read(ctx, ids, redisstate.Want{
		Fields: redisstate.Facts, Rounds: redisstate.LastRounds(2), MaxBytes: dependencyBytesAtOnce,
		Texts: func(t *task.Task) []redisstate.TextsOf {
			return []redisstate.TextsOf{{Round: t.LastRun(), Texts: task.TextOutput | task.TextResult}}
		},
	})
}

// eachOfGroup calls a function with the ids of the finished tasks of a group, page by page. It gives out each id once,
// even if a manager archives the tasks meanwhile.
func (l Links) eachOfGroup(ctx context.Context, group string, page func(ids []int64) error) error {
	of := redisstate.ListQuery{Group: group, States: task.FinishedStates, OldestFirst: true}
	for entries, err := range of.Pages(ctx, l.s, groupIDsPerPage) {
		if err != nil {
			return err
		}
		if err := page(redisstate.IDsOf(entries)); err != nil {
			return err
		}
	}
	return nil
}

const groupIDsPerPage = 1000
