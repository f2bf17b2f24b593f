package listing

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/redisstate"
)

// idsPerPage is the largest number of ids that ByID handles at once.
const idsPerPage = 1000

// Find returns up to limit tasks that a query selects. It begins after the cursor, or with the first task if the cursor
// is "".
func Find(ctx context.Context, s Store, q tdf.Query, after string, limit int) (Page, error) {
	if limit < 1 {
		return Page{}, &tdf.QueryError{Problem: fmt.Sprintf("list %d tasks: limit must be at least 1", limit)}
	}
	w, err := New(ctx, s, q, after)
	if err != nil {
		return Page{}, err
	}
	return w.Page(limit)
}

// ByID calls the function take with each task that a query selects, by ascending id, until take returns false. It reads
// the texts that the query searches, and the texts that the function texts names.
func ByID(ctx context.Context, s Store, q tdf.Query, texts func(*tdf.Task) []redisstate.TextsOf,
	take func(*tdf.Task) bool,
) error {
	q.Order = tdf.OldestFirst
	if _, err := prepare(q); err != nil {
		return err
	}
	if len(q.IDs) > 0 || q.Group != "" { // the list of a group is already sorted by id
		q.IDs = slices.Sorted(slices.Values(q.IDs))
		_, err := each(ctx, s, q, texts, take)
		return err
	}
	for ids, err := range s.IDs(ctx, idsPerPage) {
		if err != nil {
			return err
		}
		q.IDs = ids
		if more, err := each(ctx, s, q, texts, take); err != nil || !more {
			return err
		}
	}
	return nil
}

// Each calls the function take with each task that a query selects, in the query's order, until take returns false. It
// reads the texts that the query searches, and the texts that the function texts names.
func Each(ctx context.Context, s Store, q tdf.Query, texts func(*tdf.Task) []redisstate.TextsOf,
	take func(*tdf.Task) bool,
) error {
	_, err := each(ctx, s, q, texts, take)
	return err
}

// each does the work of Each. It returns false if take has returned false.
func each(ctx context.Context, s Store, q tdf.Query, texts func(*tdf.Task) []redisstate.TextsOf,
	take func(*tdf.Task) bool,
) (more bool, err error) {
	more = true
	for after, last := "", false; more && !last; last = after == "" {
		err := pool.Part(ctx, func(ctx context.Context) (kept int64, err error) {
			w, err := New(ctx, s, q, after)
			if err != nil {
				return 0, err
			}
			w.Add(texts)
			w.Bounds.Bytes = bytesAtOnce // take need not keep the tasks, so the memory for a page is small
			err = w.Each(func(t *tdf.Task) bool {
				more = take(t)
				return more
			})
			after = w.Next()
			return 0, err
		})
		if err != nil {
			return false, err
		}
	}
	return more, nil
}

// Validate checks a query and the cursor of a page, without Redis. If one of them is invalid, it returns a
// *[tdf.QueryError].
func Validate(q tdf.Query, cursor string) error {
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
	Tasks []*tdf.Task
	// Looked is the number of tasks that were read for this page. The lists in Redis contain only the state, the group
	// and the time. To check any other condition, the walk reads each task.
	Looked int
	Next   string // the cursor of the next page; "" on the last page
}
