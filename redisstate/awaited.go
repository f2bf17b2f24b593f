package redisstate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// An AwaitedGroup is a group that open tasks wait for.
type AwaitedGroup struct {
	Group      string
	Mark       tdf.GroupMark
	Dependents []int64 // some of the tasks that wait for the group
}

// MostAwaited returns the groups that the most tasks wait for, but at most the given number of groups. It returns at most the
// given number of dependents of each group.
func (s *Store) MostAwaited(ctx context.Context, groups, dependents int64) ([]AwaitedGroup, error) {
	var names []string
	err := s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		names, err = s.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{Key: s.keys.awaitedGroups(), Start: 0, Stop: groups - 1, Rev: true}).Result()
		if err != nil && isWrongType(err) {
			return nil
		}
		return err
	})
	marks, lists := make([]*redis.StringCmd, len(names)), make([]*redis.StringSliceCmd, len(names))
	if err == nil {
		err = s.pipeline(ctx, func(p redis.Pipeliner) {
			for i, name := range names {
				marks[i] = p.HGet(ctx, s.keys.groups(), name)
				lists[i] = p.LRange(ctx, s.keys.groupDependents(name), 0, dependents-1)
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the groups that tasks wait for: redis: %w", err)
	}
	var awaited []AwaitedGroup
	for i, name := range names {
		group := AwaitedGroup{Group: name, Mark: parseMark(marks[i].Val()).Mark}
		for _, entry := range lists[i].Val() { // id:round, or id:round?
			member, _, _ := strings.Cut(entry, ":")
			if id, err := strconv.ParseInt(member, 10, 64); err == nil {
				group.Dependents = append(group.Dependents, id)
			}
		}
		if len(group.Dependents) > 0 { // otherwise its dependents wait no longer
			awaited = append(awaited, group)
		}
	}
	return awaited, nil
}

// OpenGroupsOf returns those groups that are not closed, and that the given tasks depend on. The names are in alphabetical
// order.
func (s *Store) OpenGroupsOf(ctx context.Context, ids []int64) ([]string, error) {
	names, err := s.groupsOf(ctx, ids)
	marks := make([]*redis.StringCmd, len(names))
	if err == nil {
		err = s.pipeline(ctx, func(p redis.Pipeliner) {
			for i, name := range names {
				marks[i] = p.HGet(ctx, s.keys.groups(), name)
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the groups that tasks wait for: redis: %w", err)
	}
	var open []string
	for i, name := range names {
		if parseMark(marks[i].Val()).Mark == tdf.GroupOpen {
			open = append(open, name)
		}
	}
	return open, nil
}

// groupsOf returns the names of the groups that the given tasks depend on, in alphabetical order.
func (s *Store) groupsOf(ctx context.Context, ids []int64) (names []string, err error) {
	values := make([]*redis.SliceCmd, len(ids))
	err = s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			values[i] = p.HMGet(ctx, s.keys.Task(id), tdf.FieldAfterGroup, tdf.FieldAfterGroupAny)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		for _, name := range v.Val() {
			if text(name) != "" {
				names = append(names, text(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// CountWaiting returns the number of open tasks that wait for other tasks.
func (s *Store) CountWaiting(ctx context.Context) (n int64, err error) {
	var size *redis.IntCmd
	err = s.pipeline(ctx, func(p redis.Pipeliner) { size = p.ZCard(ctx, s.keys.place(tdf.WaitingPlace)) })
	if err != nil {
		return 0, fmt.Errorf("count waiting tasks: redis: %w", err)
	}
	return size.Val(), nil
}
