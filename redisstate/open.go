package redisstate

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
)

// Open opens tasks and returns their ids, which ascend. Up to 250 tasks or 4 MiB are
// opened in one atomic call, more in several: on an error the ids tell how far it got.
// A definition that makes no sense is refused before anything is opened.
func (s *Store) Open(ctx context.Context, who string, definitions ...tdf.Properties) ([]int64, error) {
	return s.open(ctx, who, "", definitions)
}

// OpenGroup opens tasks like Open, but none if the group of the first one has tasks already: of
// two that open one new group at once, one gets [ErrGroupTaken].
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
			return nil, fmt.Errorf("task %d of %d: %w", i+1, len(definitions), err)
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

// maxOpenedAtOnce bounds what is opened in one step, which Redis does nothing else during.
const maxOpenedAtOnce = 250

func openBatch(definitions []tdf.Properties) int {
	return batch(len(definitions), atMost(maxOpenedAtOnce), bound{maxBytesPerCall, func(i int) int {
		u := Unit{Open: definitions[i : i+1]}
		return u.size()
	}})
}
