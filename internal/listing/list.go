package listing

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// idsPerPage is the largest number of ids that ByID handles at once.
const idsPerPage = 1000

// Find returns up to limit tasks that a query selects. It begins after the cursor, or with the first task if the cursor
// is "".
func Find(ctx context.Context, s Store, q task.Query, after string, limit int) (Page, error) {
	if limit < 1 {
		return Page{}, &task.QueryError{Problem: fmt.Sprintf("list %d tasks: limit must be at least 1", limit)}
	}
	w, err := New(ctx, s, q, after)
	if err != nil {
		return Page{}, err
	}
	return w.Page(limit)
}

// ByID calls the function take with each task that a query selects, by ascending id, until take returns false. It reads
// the texts that the query searches, and the texts that the function texts names.
func ByID(ctx context.Context, s Store, q task.Query, texts func(*task.Task) []redisstate.TextsOf,
	take func(*task.Task) bool,
) error {
	q.Order = task.OldestFirst
	if _, err := prepare(q); err != nil {
		return err
	}
	r := reader{store: s, q: q, texts: texts}
	if len(q.IDs) > 0 || q.Group != "" { // the list of a group is already sorted by id
		r.q.IDs = slices.Sorted(slices.Values(q.IDs))
		return r.each(ctx, take)
	}
	ids, stop := iter.Pull2(s.IDs(ctx, idsPerPage))
	defer stop()
	r.ids = ids
	return r.each(ctx, take)
}

// Each calls the function take with each task that a query selects, in the query's order, until take returns false. It
// reads the texts that the query searches, and the texts that the function texts names.
func Each(ctx context.Context, s Store, q task.Query, texts func(*task.Task) []redisstate.TextsOf,
	take func(*task.Task) bool,
) error {
	r := reader{store: s, q: q, texts: texts}
	return r.each(ctx, take)
}

// Validate checks a query and the cursor of a page, without Redis. If one of them is invalid, it returns a
// *[task.QueryError].
func Validate(q task.Query, cursor string) error {
	prepared, err := prepare(q)
	if err != nil {
		return err
	}
	_, err = positionOf(&prepared, cursor)
	return err
}

// A Page is one part of the tasks that a query selects.
type Page struct {
	// Tasks are summaries. They contain the input, the meta, and the texts that the query searches. Task.Unread and
	// Round.Unread name the other texts.
	Tasks []*task.Task
	// Looked is the number of tasks that were read for this page. The lists in Redis contain only the state, the group
	// and the time. To check any other condition, the walk reads each task.
	Looked int
	Next   string // the cursor of the next page; "" on the last page
}
