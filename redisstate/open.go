package redisstate

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
)

// Open opens tasks and returns their ids in ascending order. One atomic call opens up to 250 tasks or 4 MiB. Open makes
// several calls for more tasks. If a call fails, Open also returns the ids of the tasks that it has already opened. If
// any definition is invalid, it opens no task.
func (s *Store) Open(ctx context.Context, who string, definitions ...tdf.Properties) ([]int64, error) {
	return s.open(ctx, who, "", definitions)
}

// OpenGroup opens tasks as Open does. If the group of the first task already has tasks, OpenGroup opens nothing, and
// the error is [ErrGroupTaken]. If two clients open the same new group at the same time, one of them gets this error.
func (s *Store) OpenGroup(ctx context.Context, who string, definitions ...tdf.Properties) ([]int64, error) {
	group := ""
	if len(definitions) > 0 {
		group = definitions[0].Group
	}
	return s.open(ctx, who, group, definitions)
}

func (s *Store) open(ctx context.Context, who, newGroup string, definitions []tdf.Properties) ([]int64, error) {
	for i := range definitions {
		if err := definitions[i].Validate(); err != nil {
			return nil, fmt.Errorf("open task %d of %d: %w", i+1, len(definitions), err)
		}
	}
	var ids []int64
	for len(definitions) > 0 {
		n := openBatch(definitions)
		opened, err := s.openAtOnce(ctx, who, newGroup, definitions[:n])
		if err != nil {
			return ids, err
		}
		ids = append(ids, opened...)
		definitions, newGroup = definitions[n:], ""
	}
	return ids, nil
}

// openAtOnce opens tasks in one call.
func (s *Store) openAtOnce(ctx context.Context, who, newGroup string, definitions []tdf.Properties) ([]int64, error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	keys := []string{s.keys.calls(s.boot), s.keys.Due(), s.keys.taskID(), s.keys.List(tdf.Open), s.keys.wakeOpen()}
	reply, err := s.callOnce(ctx, s.scripts.open, keys, true, func(e *encoder) {
		e.add(s.keys.taskPrefix(), s.keys.groupPrefix())
		e.count(groupCode(tdf.Open))
		e.add(who, newGroup)
		e.openings(s.keys.ns, definitions)
	})
	if err != nil {
		return nil, err
	}
	unit := Unit{Open: definitions}
	o := outcome(&unit, text(reply))
	return o.IDs, o.Err
}

func (e *encoder) openings(namespace string, definitions []tdf.Properties) {
	fields := make([][]tdf.Field, len(definitions))
	var groups []string
	for i := range definitions {
		fields[i] = definitions[i].OpenFields(namespace)
		if group := definitions[i].Group; group != "" && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	shared := sharedFields(fields)
	e.strings(groups)
	e.fields(shared)
	e.count(len(definitions))
	for i := range definitions {
		e.count(slices.Index(groups, definitions[i].Group) + 1)
		e.opening(&definitions[i], fields[i], shared)
	}
}

// maxOpenedAtOnce is the largest number of tasks that one atomic call opens. The limit keeps the call short, because
// Redis serves no other client meanwhile.
const maxOpenedAtOnce = 250

func openBatch(definitions []tdf.Properties) int {
	return batch(len(definitions), atMost(maxOpenedAtOnce), bound{maxBytesPerCall, func(i int) int {
		u := Unit{Open: definitions[i : i+1]}
		return u.size()
	}})
}
