package redisstate

import (
	"context"
	"fmt"

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
		outcomes, err := s.Apply(ctx, who, Unit{Open: definitions[:n], NewGroup: newGroup})
		if err == nil {
			err = outcomes[0].Err
		}
		if err != nil {
			return ids, err
		}
		ids = append(ids, outcomes[0].IDs...)
		definitions, newGroup = definitions[n:], ""
	}
	return ids, nil
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
