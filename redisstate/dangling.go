package redisstate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// A GroupPage says where a walk through the indexes of all groups goes on; the zero GroupPage is its
// beginning.
type GroupPage struct {
	keys   uint64   // within the keys of the Redis; 0: at their beginning
	begun  bool     // the walk through the keys has begun
	groups []string // whose indexes were found, and not looked through yet
	index  uint64   // within the index of the first of them
}

// Bounds of one page of that walk.
const (
	keysScanned   = 1000
	groupsScanned = 20 // indexes; a small one is one page
)

// DanglingIDs looks at the next ids in the indexes of groups, about most of them, and returns those without
// a hash: somebody deleted it. Done says that the page was the last one.
func (s *Store) DanglingIDs(ctx context.Context, from GroupPage, most int64) (dangling []Finding, next GroupPage, done bool, err error) {
	if len(from.groups) == 0 && (!from.begun || from.keys > 0) {
		from.begun = true
		if from.groups, from.keys, err = s.scanGroups(ctx, from.keys); err != nil {
			return nil, from, false, err
		}
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
		from = GroupPage{}
	}
	return dangling, from, done, nil
}

func (s *Store) scanGroups(ctx context.Context, from uint64) (groups []string, next uint64, err error) {
	prefix := s.keys.groupPrefix()
	var found []string
	err = s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		found, next, err = s.rdb.ScanType(ctx, from, literally.Replace(prefix)+"*", keysScanned, "zset").Result()
		return err
	})
	if err != nil {
		return nil, from, fmt.Errorf("look for groups: redis: %w", err)
	}
	for _, key := range found {
		groups = append(groups, strings.TrimPrefix(key, prefix))
	}
	return groups, next, nil
}

// scanIndex returns ids whose scores are places in the index of a group. Anything else was put there by
// somebody else, or is a list of a namespace whose name begins like this key.
func (s *Store) scanIndex(ctx context.Context, group string, from uint64, most int64) (ids []int64, next uint64, err error) {
	var scanned []string
	err = s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		scanned, next, err = s.rdb.ZScan(ctx, s.keys.Group(group), from, "", most).Result()
		if err != nil && isWrongType(err) { // it was another key a moment ago
			return nil
		}
		return err
	})
	if err != nil {
		return nil, from, fmt.Errorf("look through group %q: redis: %w", group, err)
	}
	for i := 0; i+1 < len(scanned); i += 2 { // each is followed by its score
		score, _ := strconv.ParseFloat(scanned[i+1], 64)
		for _, id := range idsOf(scanned[i : i+1]) {
			if isGroupScore(score, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids, next, nil
}

// danglingOf returns the ids that have no hash. That the index still holds such an id is read after that:
// whoever removes a task removes both in one step.
func (s *Store) danglingOf(ctx context.Context, group string, ids []int64) ([]Finding, error) {
	states, places := make([]*redis.StringCmd, len(ids)), make([]*redis.FloatCmd, len(ids))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			states[i] = p.HGet(ctx, s.keys.Task(id), "state")
			places[i] = p.ZScore(ctx, s.keys.Group(group), strconv.FormatInt(id, 10))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("look up the tasks of group %q: redis: %w", group, err)
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
