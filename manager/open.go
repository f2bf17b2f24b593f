package manager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Open opens tasks and returns their ids, which ascend. All definitions are checked before
// anything is opened: an error then wraps a *[tdf.PropertyError]. Up to 250 tasks are opened
// in one atomic step, more in several: on any other error the ids tell which were opened.
func (m *Manager) Open(ctx context.Context, definitions ...tdf.Properties) ([]int64, error) {
	return m.open(ctx, definitions, m.store.Open)
}

// ErrGroupTaken says that a group that was to be new has tasks.
var ErrGroupTaken = redisstate.ErrGroupTaken

// OpenGroup opens tasks like Open, but none if the group of the first one has tasks already,
// whatever their state: the error then wraps [ErrGroupTaken]. So of two that open the same group
// at the same moment only one does. More tasks are added to it by Open.
func (m *Manager) OpenGroup(ctx context.Context, definitions ...tdf.Properties) ([]int64, error) {
	return m.open(ctx, definitions, m.store.OpenGroup)
}

func (m *Manager) open(ctx context.Context, definitions []tdf.Properties,
	open func(ctx context.Context, who string, definitions ...tdf.Properties) ([]int64, error),
) ([]int64, error) {
	if err := validate(definitions); err != nil {
		return nil, fmt.Errorf("opening tasks: %w", err)
	}
	definitions, err := m.scatter(ctx, definitions)
	if err != nil {
		return nil, fmt.Errorf("opening tasks: %w", err)
	}
	ids, err := open(ctx, m.name, definitions...)
	if err != nil {
		return ids, fmt.Errorf("opening tasks: %w", err)
	}
	return ids, nil
}

func validate(definitions []tdf.Properties) error {
	for i := range definitions {
		if err := definitions[i].Validate(); err != nil {
			return fmt.Errorf("task %d of %d: %w", i+1, len(definitions), err)
		}
	}
	return nil
}

// scatter adds the random offsets of add_random_start_offset (docs/configuration.md,
// "[task_defaults]"): whole milliseconds below a second, to start_after or, where that is
// past, to now.
func (m *Manager) scatter(ctx context.Context, definitions []tdf.Properties) ([]tdf.Properties, error) {
	if !m.cfg.AddRandomStartOffset || len(definitions) == 0 {
		return definitions, nil
	}
	now, err := m.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	definitions = slices.Clone(definitions)
	for i := range definitions {
		d := &definitions[i]
		start := max(d.StartAfter, now).Add(tdf.Seconds(rand.IntN(1000)) / 1000)
		if start < d.EndBefore { // else there is no room for an offset
			d.StartAfter = start
		}
	}
	return definitions, nil
}
