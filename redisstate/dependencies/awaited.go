package dependencies

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// An AwaitedGroup is a group that open tasks wait for.
type AwaitedGroup struct {
	Group      string
	Mark       task.GroupMark
	Dependents []int64 // some of the tasks that wait for the group
}

const readAwaited = "read the groups that tasks wait for"

// MostAwaited returns the groups that the most tasks wait for, but at most the given number of groups. It returns at
// most the given number of dependents of each group.
func MostAwaited(ctx context.Context, s *redisstate.Store, groups, dependents int64) ([]AwaitedGroup, error) {
	var names *redis.StringSliceCmd
	err := s.Conn.Pipeline(ctx, readAwaited, func(p redis.Pipeliner) {
		names = p.ZRevRange(ctx, s.Keys.AwaitedGroups(), 0, groups-1)
	})
	if err != nil {
		return nil, err
	}
	marks, err := s.Groups.GroupMarks(ctx, names.Val())
	if err != nil {
		return nil, err
	}
	lists, err := conn.AskEach(ctx, s.Conn, readAwaited, names.Val(),
		func(p redis.Pipeliner, name string) *redis.StringSliceCmd {
			return p.LRange(ctx, s.Keys.GroupDependents(name), 0, dependents-1)
		})
	if err != nil {
		return nil, err
	}
	var awaited []AwaitedGroup
	for i, name := range names.Val() {
		group := AwaitedGroup{Group: name, Mark: marks[i]}
		for _, entry := range lists[i].Val() {
			if a, ok := parseAwaiting(entry); ok {
				group.Dependents = append(group.Dependents, a.ID)
			}
		}
		if len(group.Dependents) > 0 { // otherwise its dependents wait no longer
			awaited = append(awaited, group)
		}
	}
	return awaited, nil
}

// An Awaiting is an entry of a task that waits for a task or a group. The task may have ended since.
type Awaiting struct {
	ID    int64
	Round int
	Any   bool // any outcome will do
	Group bool // it waits for the group
}

// parseAwaiting reads id:round, or id:round?
func parseAwaiting(entry string) (a Awaiting, ok bool) {
	entry, a.Any = strings.CutSuffix(entry, "?")
	id, round, _ := strings.Cut(entry, ":")
	var err1, err2 error
	a.ID, err1 = strconv.ParseInt(id, 10, 64)
	a.Round, err2 = strconv.Atoi(round)
	return a, err1 == nil && err2 == nil
}

// WaitingFor returns the first tasks that wait for a task, and then those that wait for its group, but at most the
// given number of each. It also returns how many there are. The group "" stands for none. When a task or a group is
// complete, nothing waits for it any more.
func WaitingFor(ctx context.Context, s *redisstate.Store, id int64, group string, most int64) (all []Awaiting,
	total int64, err error,
) {
	keys := []string{s.Keys.DependentsPrefix() + strconv.FormatInt(id, 10)}
	if group != "" {
		keys = append(keys, s.Keys.GroupDependents(group))
	}
	const reading = "read the tasks that wait for a task"
	lists, err := conn.AskEach(ctx, s.Conn, reading, keys, func(p redis.Pipeliner, key string) *redis.StringSliceCmd {
		return p.LRange(ctx, key, 0, most-1)
	})
	if err != nil {
		return nil, 0, err
	}
	lengths, err := conn.AskEach(ctx, s.Conn, reading, keys, func(p redis.Pipeliner, key string) *redis.IntCmd {
		return p.LLen(ctx, key)
	})
	for i, list := range lists {
		total += lengths[i].Val()
		for _, entry := range list.Val() {
			if a, ok := parseAwaiting(entry); ok {
				a.Group = i > 0
				all = append(all, a)
			}
		}
	}
	return all, total, err
}

// A Waiting is a task that waits for others. Some of the tasks that it names may have ended.
type Waiting struct {
	ID    int64
	Group string // the group of the task itself, or ""
	After []int64
}

// FirstWaiting returns the tasks that have waited for the longest time, but at most the given number of them.
func FirstWaiting(ctx context.Context, s *redisstate.Store, most int64) (ids []int64, err error) {
	members, err := conn.Ask(ctx, s.Conn, "read waiting tasks", func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRange(ctx, s.Keys.OpenSet(task.WaitingPlace), 0, most-1)
	})
	if conn.IsWrongType(err) {
		return nil, nil
	}
	return limits.IDsOf(members), err
}

// WaitingOf returns those of the given tasks that wait for others. If they have more dependencies than the given
// number, it leaves out the last tasks.
func WaitingOf(ctx context.Context, s *redisstate.Store, ids []int64, most int) ([]Waiting, error) {
	stored, err := s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Facts})
	if err != nil {
		return nil, err
	}
	stored = slices.DeleteFunc(stored, func(x redisstate.Stored) bool { return x.Task == nil || !x.Task.Waits() })
	stored = stored[:conn.Batch(len(stored), conn.Bound{Limit: most, Amount: func(i int) int {
		return stored[i].Task.Links
	}})]
	values, err := conn.AskEach(ctx, s.Conn, "read dependencies", stored,
		func(p redis.Pipeliner, x redisstate.Stored) *redis.SliceCmd {
			return p.HMGet(ctx, s.Keys.Task(x.ID), linkFields...)
		})
	var waiting []Waiting
	for i, v := range values {
		w := Waiting{ID: stored[i].ID, Group: stored[i].Task.Group}
		for _, d := range linksOf(v.Val()) {
			if d.group == "" {
				w.After = append(w.After, d.id)
			}
		}
		waiting = append(waiting, w)
	}
	return waiting, err
}

// CountWaiting returns the number of open tasks that wait for other tasks.
func CountWaiting(ctx context.Context, s *redisstate.Store) (int64, error) {
	n, err := conn.Ask(ctx, s.Conn, "count waiting tasks", func(r redis.Cmdable) *redis.IntCmd {
		return r.ZCard(ctx, s.Keys.OpenSet(task.WaitingPlace))
	})
	if conn.IsWrongType(err) {
		return 0, nil
	}
	return n, err
}
