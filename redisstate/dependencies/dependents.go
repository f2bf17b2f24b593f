package dependencies

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Dependency is a task or a group that a task waits for.
type Dependency struct {
	ID    int64      // 0 for a group
	State task.State // of a task; None if it does not exist
	Group string     // "" for a task
	Mark  task.GroupMark
}

// String names a dependency that is not met, such as "task 7 (running)".
func (d Dependency) String() string {
	switch {
	case d.ID > 0:
		return fmt.Sprintf("task %d (%s)", d.ID, d.State)
	case d.Mark == task.GroupOpen:
		return fmt.Sprintf("campaign %s (not closed yet)", d.Group)
	}
	return fmt.Sprintf("campaign %s (closed, not complete)", d.Group)
}

// Pending returns the dependencies that a task still waits for, but at most the given number of them.
func Pending(ctx context.Context, s *redisstate.Store, id int64, most int) (pending []Dependency, err error) {
	values, err := conn.Ask(ctx, s.Conn, fmt.Sprintf("read the dependencies of task %d", id),
		func(r redis.Cmdable) *redis.SliceCmd {
			return r.HMGet(ctx, s.Keys.Task(id), linkFields...)
		})
	if err != nil {
		return nil, err
	}
	for page := range slices.Chunk(linksOf(values), linksPerCall) {
		found, err := pendingOf(ctx, s, page)
		if err != nil {
			return nil, err
		}
		if pending = append(pending, found...); len(pending) >= most {
			return pending[:most], nil
		}
	}
	return pending, nil
}

func pendingOf(ctx context.Context, s *redisstate.Store, all []link) (pending []Dependency, err error) {
	states, err := conn.AskEach(ctx, s.Conn, "read dependencies", all,
		func(p redis.Pipeliner, d link) *redis.StringCmd {
			if d.group != "" {
				return nil
			}
			return p.HGet(ctx, s.Keys.Task(d.id), "state")
		})
	if err != nil {
		return nil, err
	}
	for i, d := range all {
		if d.group == "" {
			if state := task.State(states[i].Val()); state != task.None && !state.Finished() {
				pending = append(pending, Dependency{ID: d.id, State: state})
			}
			continue
		}
		mark, err := s.Groups.GroupMark(ctx, d.group)
		if err != nil {
			return nil, err
		}
		counts, err := s.Counts(ctx, d.group)
		if err != nil {
			return nil, err
		}
		if !mark.Mark.IsComplete(counts) {
			pending = append(pending, Dependency{Group: d.group, Mark: mark.Mark})
		}
	}
	return pending, nil
}

// A Dependent is a task that failed because a dependency was not met.
type Dependent struct {
	ID    int64
	Round int
	After []int64 // the tasks that it requires to succeed
	Group string  // the group that it requires to succeed, or ""
}

// EachDependent calls a function for each failed or archived task that has failed because a dependency was not met. It
// reads the lists of all failed and archived tasks, page by page. If a task is archived meanwhile, the function may get
// it twice.
func EachDependent(ctx context.Context, s *redisstate.Store, each func(Dependent)) error {
	of := redisstate.ListQuery{States: []task.State{task.Failed, task.Archived}, OldestFirst: true}
	for entries, err := range of.Pages(ctx, s, tasksPerTurn) {
		if err != nil {
			return err
		}
		if err := dependentsAmong(ctx, s, redisstate.IDsOf(entries), each); err != nil {
			return err
		}
	}
	return nil
}

func dependentsAmong(ctx context.Context, s *redisstate.Store, ids []int64, each func(Dependent)) error {
	links, err := conn.AskEach(ctx, s.Conn, "read failed tasks", ids,
		func(p redis.Pipeliner, id int64) *redis.SliceCmd {
			return p.HMGet(ctx, s.Keys.Task(id), "links", "round")
		})
	if err != nil {
		return err
	}
	var found []Dependent
	for i, id := range ids {
		v := append(links[i].Val(), nil, nil) // the key of the task may be no hash
		if n, _ := strconv.Atoi(conn.Text(v[0])); n > 0 {
			found = append(found, Dependent{ID: id, Round: task.Hash{"round": conn.Text(v[1])}.Round()})
		}
	}
	values, err := conn.AskEach(ctx, s.Conn, "read failed tasks", found,
		func(p redis.Pipeliner, d Dependent) *redis.SliceCmd {
			return p.HMGet(ctx, s.Keys.Task(d.ID), task.RoundField(d.Round, task.RoundUnmet), task.FieldAfter,
				task.FieldAfterGroup)
		})
	for i, value := range values {
		d := found[i]
		if v := value.Val(); len(v) == 3 && conn.Text(v[0]) != "" {
			d.After, d.Group = task.ParseIDs(conn.Text(v[1])), conn.Text(v[2])
			each(d)
		}
	}
	return err
}
