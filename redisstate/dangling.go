package redisstate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A GroupPage is the place where a walk through the indexes of all groups continues. The walk begins with the zero
// GroupPage.
type GroupPage struct {
	keys   uint64   // the cursor of SCAN over the keys of Redis; 0 at the beginning and at the end
	begun  bool     // the walk through the keys has begun
	groups []string // groups whose indexes the walk has not finished
	index  uint64   // the cursor in the index of the first group
	found  []string // groups that the last page has found; see [Store.KeepGroupNames]
	named  string   // the name of a group after which KeepGroupNames continues
}

// Limits for one page of the walk.
const (
	keysScanned   = 1000
	groupsScanned = 20 // the largest number of indexes that one page reads from
)

// DanglingIDs examines the next page of ids in the indexes of groups. The page has about the given number of ids.
// DanglingIDs returns findings about ids that have no task, for example because the task's hash was deleted by hand. If
// the page was the last one, done is true.
func (s *Store) DanglingIDs(ctx context.Context, from GroupPage, most int64) (dangling []Finding, next GroupPage, done bool, err error) {
	from.found = nil
	if len(from.groups) == 0 && (!from.begun || from.keys > 0) {
		from.begun = true
		if from.groups, from.keys, err = s.scanGroups(ctx, from.keys); err != nil {
			return nil, from, false, err
		}
		from.found = from.groups
	}
	var seen int64
	for range groupsScanned {
		if len(from.groups) == 0 || seen >= most {
			break
		}
		group := from.groups[0]
		members, cursor, err := s.scanIndex(ctx, group, from.index, most)
		if err != nil {
			return nil, from, false, err
		}
		found, err := s.danglingOf(ctx, group, members)
		if err != nil {
			return nil, from, false, err
		}
		dangling = append(dangling, found...)
		seen += int64(len(members))
		if from.index = cursor; cursor == 0 {
			from.groups = from.groups[1:]
		}
	}
	if done = len(from.groups) == 0 && from.keys == 0; done {
		from = GroupPage{found: from.found, named: from.named}
	}
	return dangling, from, done, nil
}

func (s *Store) scanGroups(ctx context.Context, from uint64) (groups []string, next uint64, err error) {
	prefix := s.Keys.GroupPrefix()
	found, next, err := s.Scan(ctx, "find groups", func(r redis.Cmdable) *redis.ScanCmd {
		return r.ScanType(ctx, from, patternEscaper.Replace(prefix)+"*", keysScanned, "zset")
	})
	if err != nil {
		return nil, from, err
	}
	for _, key := range found {
		groups = append(groups, strings.TrimPrefix(key, prefix))
	}
	return groups, next, nil
}

// scanIndex returns the next ids in the index of a group. It skips ids with an invalid score. If a score is invalid,
// another program has added the member, or the key belongs to another namespace. The name of that other namespace
// begins with the name of this namespace and ":group".
func (s *Store) scanIndex(ctx context.Context, group string, from uint64, most int64) (ids []int64, next uint64, err error) {
	scanned, next, err := s.Scan(ctx, fmt.Sprintf("read the index of group %q", group), func(r redis.Cmdable) *redis.ScanCmd {
		return r.ZScan(ctx, s.Keys.Group(group), from, "", most)
	})
	if err != nil && !conn.IsWrongType(err) { // the key may have changed its type since the scan
		return nil, from, err
	}
	for i := 0; i+1 < len(scanned); i += 2 { // a score follows each member
		score, _ := strconv.ParseFloat(scanned[i+1], 64)
		for _, id := range conn.IDsOf(scanned[i : i+1]) {
			if isGroupScore(score, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids, next, nil
}

// danglingOf returns findings about the ids that have no task. It reads the task first, and then the index again. A
// task leaves the index at the same moment as its hash is removed. So if the hash is missing and the id is still in the
// index, the id has no task.
func (s *Store) danglingOf(ctx context.Context, group string, ids []int64) ([]Finding, error) {
	states, places := make([]*redis.StringCmd, len(ids)), make([]*redis.FloatCmd, len(ids))
	err := s.Pipeline(ctx, fmt.Sprintf("look up the tasks of group %q", group), func(p redis.Pipeliner) {
		for i, id := range ids {
			states[i] = p.HGet(ctx, s.Keys.Task(id), "state")
			places[i] = p.ZScore(ctx, s.Keys.Group(group), strconv.FormatInt(id, 10))
		}
	})
	if err != nil {
		return nil, err
	}
	var dangling []Finding
	for i, id := range ids {
		if states[i].Err() == nil || places[i].Err() != nil {
			continue
		}
		m, _ := tdf.Placement{ID: id, Group: group}.Repair(0)
		dangling = append(dangling, Finding{ID: id, Problem: m.Note, Repair: m, Certain: true})
	}
	return dangling, nil
}
