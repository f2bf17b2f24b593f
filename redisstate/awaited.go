package redisstate

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
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
	var names *redis.StringSliceCmd
	err := s.Pipeline(ctx, readAwaited, func(p redis.Pipeliner) { names = p.ZRevRange(ctx, s.Keys.AwaitedGroups(), 0, groups-1) })
	if err != nil {
		return nil, err
	}
	marks, err := s.groupMarks(ctx, names.Val())
	if err != nil {
		return nil, err
	}
	lists, err := conn.AskEach(ctx, s.Conn, readAwaited, names.Val(), func(p redis.Pipeliner, name string) *redis.StringSliceCmd {
		return p.LRange(ctx, s.Keys.GroupDependents(name), 0, dependents-1)
	})
	if err != nil {
		return nil, err
	}
	var awaited []AwaitedGroup
	for i, name := range names.Val() {
		group := AwaitedGroup{Group: name, Mark: marks[i]}
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
	if err != nil {
		return nil, err
	}
	marks, err := s.groupMarks(ctx, names)
	var open []string
	for i, mark := range marks {
		if mark == tdf.GroupOpen {
			open = append(open, names[i])
		}
	}
	return open, err
}

const readAwaited = "read the groups that tasks wait for"

// groupMarks returns the marks of groups.
func (s *Store) groupMarks(ctx context.Context, names []string) ([]tdf.GroupMark, error) {
	values, err := conn.AskEach(ctx, s.Conn, readAwaited, names, func(p redis.Pipeliner, name string) *redis.StringCmd {
		return p.HGet(ctx, s.Keys.Groups(), name)
	})
	marks := make([]tdf.GroupMark, len(values))
	for i, value := range values {
		marks[i] = parseMark(value.Val()).Mark
	}
	return marks, err
}

// groupsOf returns the names of the groups that the given tasks depend on, in alphabetical order.
func (s *Store) groupsOf(ctx context.Context, ids []int64) (names []string, err error) {
	values, err := conn.AskEach(ctx, s.Conn, readAwaited, ids, func(p redis.Pipeliner, id int64) *redis.SliceCmd {
		return p.HMGet(ctx, s.Keys.Task(id), tdf.FieldAfterGroup, tdf.FieldAfterGroupAny)
	})
	for _, v := range values {
		for _, name := range v.Val() {
			if conn.Text(name) != "" {
				names = append(names, conn.Text(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// CountWaiting returns the number of open tasks that wait for other tasks.
func (s *Store) CountWaiting(ctx context.Context) (int64, error) {
	n, err := conn.Ask(ctx, s.Conn, "count waiting tasks", func(r redis.Cmdable) *redis.IntCmd { return r.ZCard(ctx, s.Keys.Place(tdf.WaitingPlace)) })
	if conn.IsWrongType(err) {
		return 0, nil
	}
	return n, err
}
