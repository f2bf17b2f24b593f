package manager

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// Get reads a whole task with all its rounds and their texts. The error wraps [tdf.ErrNoTask] if there is no such task.
func (m *Manager) Get(ctx context.Context, id int64) (*Task, error) {
	stored, err := m.store.ReadOne(ctx, id, redisstate.Want{Fields: redisstate.Whole})
	if err != nil {
		return nil, err
	}
	return newTask(stored.Task, true), nil // the server reports invalid properties
}

// List returns all tasks that a query selects. It reads them in pages, so few of them are in memory at a time. A task that moves to
// another state meanwhile may come twice or not at all, unless the query has a Group or the order is ByID. After an error no more
// tasks come. An invalid query is a *[QueryError].
func (m *Manager) List(ctx context.Context, q Query) iter.Seq2[*Task, error] {
	return func(yield func(*Task, error) bool) {
		if err := m.list(ctx, q, func(t *Task) bool { return yield(t, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

func (m *Manager) list(ctx context.Context, q Query, take func(*Task) bool) error {
	each := listing.Each
	if q.Order == ByID {
		each = listing.ByID
	}
	err := each(ctx, m.store, q.listing(), q.texts, func(t *tdf.Task) bool { return take(q.view(t)) })
	return queryError(err)
}

// Page returns up to limit tasks that a query selects. cursor is "" for the first page, and the Next of the page before for any other.
// A task that stays in its state comes on exactly one page; in a group, every task does.
//
// Page takes about half a second at most. So a page may have fewer tasks, or none, and not be the last one. An invalid query or cursor
// is a *[QueryError].
func (m *Manager) Page(ctx context.Context, q Query, cursor string, limit int) (Page, error) {
	if q.Order == ByID && q.Group == "" {
		return Page{}, &QueryError{"list tasks: only List supports the order by id"}
	}
	if limit < 1 {
		return Page{}, &QueryError{fmt.Sprintf("list %d tasks: limit must be at least 1", limit)}
	}
	w, err := listing.New(ctx, m.store, q.listing(), cursor)
	if err != nil {
		return Page{}, queryError(err)
	}
	w.Add(q.texts)
	found, err := w.Page(limit)
	page := Page{Next: found.Next, Looked: found.Looked}
	for _, t := range found.Tasks {
		page.Tasks = append(page.Tasks, q.view(t))
	}
	return page, err
}

// queryError returns the errors of package listing as those of this package.
func queryError(err error) error {
	var e *listing.QueryError
	if errors.As(err, &e) {
		return &QueryError{e.Problem}
	}
	return err
}

// Counts counts the tasks of some groups by state, all at one moment. Without groups it counts all tasks.
func (m *Manager) Counts(ctx context.Context, groups ...string) (tdf.Counts, error) {
	groups, err := scopeOf(groups)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	counts, err := m.store.Counts(ctx, groups...)
	return counts, err
}
