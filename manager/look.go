package manager

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Counts is how many tasks are in each state.
type Counts = redisstate.Counts

// Counts counts the tasks by state, of all groups or of those named, all at one moment.
func (m *Manager) Counts(ctx context.Context, groups ...string) (Counts, error) {
	scope, err := scopeOf(groups)
	if err != nil {
		return nil, fmt.Errorf("counting tasks: %w", err)
	}
	return m.store.Counts(ctx, scope...)
}

// Now returns the time by Redis's clock, which is the one that counts.
func (m *Manager) Now(ctx context.Context) (tdf.Time, error) { return m.store.Now(ctx) }

// Task reads one task with all its rounds, piece by piece where that is much; the error is [tdf.ErrNoTask] where there is none.
func (m *Manager) Task(ctx context.Context, id int64) (*tdf.Task, error) {
	stored, err := m.store.ReadOne(ctx, id, redisstate.Want{Fields: redisstate.Whole})
	return stored.Task, err
}

// Tasks reads tasks with all their rounds, in the order of the ids; nil stands for one that
// is not there. All their outputs are in memory then: read many in pages.
func (m *Manager) Tasks(ctx context.Context, ids ...int64) ([]*tdf.Task, error) {
	stored, err := m.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Whole})
	tasks := make([]*tdf.Task, len(stored))
	for i := range stored {
		tasks[i] = stored[i].Task
	}
	return tasks, err
}

// List returns a page of the ids in one state: at most so many, after leaving out the first
// offset. In the order in which they entered the state, or of a group by id. Tasks that come
// and go between two calls shift the pages.
func (m *Manager) List(ctx context.Context, state tdf.State, group string, offset, most int64) ([]int64, error) {
	if offset < 0 || most < 1 {
		return nil, fmt.Errorf("listing %s tasks: offset %d has to be from 0 up, and most %d from 1 up", state, offset, most)
	}
	return m.store.List(ctx, state, group, offset, most)
}
