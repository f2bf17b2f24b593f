package redisstate

import (
	"context"
	"fmt"
	"iter"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// Counts counts the tasks of the named groups by state, all at one moment. If no group is named, it counts all tasks.
func (s *Store) Counts(ctx context.Context, groups ...string) (task.Counts, error) {
	var keys []string
	var ranges []any
	for _, group := range groups {
		keys = append(keys, s.Keys.Group(group))
	}
	for _, state := range task.States {
		if len(groups) == 0 {
			keys = append(keys, s.Keys.List(state))
			continue
		}
		first, last := index.GroupRange(state)
		ranges = append(ranges, first, last)
	}
	numbers := len(task.States)
	if len(groups) == 0 {
		keys = append(keys, s.Keys.List(rules.Placed))
		numbers++
	}
	reply, err := s.Conn.Run(ctx, "count tasks", lua.Counts, keys, ranges, conn.ListOf(numbers, numbers, conn.IsNumber))
	if err != nil {
		return nil, err
	}
	counts := task.Counts{}
	for i, n := range conn.List(reply) {
		state := task.Open // the last list is Placed
		if i < len(task.States) {
			state = task.States[i]
		}
		counts[state] += int64(conn.Number(n))
	}
	return counts, nil
}

// List returns a page of the ids of the tasks in one list, in the order of their scores in the list. If a group is
// named, it returns only tasks of this group, ordered by id.
func (s *Store) List(ctx context.Context, of task.State, group string, offset, most int64) ([]int64, error) {
	members, err := conn.Ask(ctx, s.Conn, fmt.Sprintf("list %s tasks", of),
		func(r redis.Cmdable) *redis.StringSliceCmd {
			if group == "" {
				return r.ZRange(ctx, s.Keys.List(of), offset, offset+most-1)
			}
			first, last := index.GroupRange(of)
			return r.ZRangeArgs(ctx, redis.ZRangeArgs{
				Key: s.Keys.Group(group), ByScore: true, Start: first, Stop: last, Offset: offset, Count: most,
			})
		})
	return conn.IDsOf(members), err
}

// Between counts the tasks that entered one of the given states between two times, and are still in that state.
func (s *Store) Between(ctx context.Context, from, to task.Time, states ...task.State) (int64, error) {
	var counts []*redis.IntCmd
	err := s.Conn.Pipeline(ctx, "count tasks by time", func(p redis.Pipeliner) {
		counts = nil
		for _, state := range states {
			for _, list := range rules.ListsOf(state) {
				counts = append(counts, p.ZCount(ctx, s.Keys.List(list), from.String(), to.String()))
			}
		}
	})
	var n int64
	for _, c := range counts {
		n += c.Val()
	}
	return n, err
}

// IDs yields the ids of all tasks ([walk.IDs]).
func (s *Store) IDs(ctx context.Context, most int64) iter.Seq2[[]int64, error] {
	return walk.IDs(ctx, s.Conn, most)
}
