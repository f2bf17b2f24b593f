package manager

import (
	"context"
	"iter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
)

// A Query selects tasks.
type Query = listing.Query

// A Page is a part of the tasks that a query selects.
type Page = listing.Page

// A QueryError says why a [Query] or a cursor is invalid.
type QueryError = listing.QueryError

// Find returns a page of the tasks that q means, at most so many: the newest first, by when they entered their
// states (open ones by when they may be claimed), or within a group by id; IDs in the order in which they are
// given. After is "" for the first page, and the Next of the one before for another. A task that does not move
// meanwhile comes on one page and on no other; in a group that holds for all tasks.
//
// A page takes half a second at most, or little more: it may have fewer tasks, or none, though there are
// more. An error in q or after is a *[QueryError].
func (m *Manager) Find(ctx context.Context, q Query, after string, most int) (Page, error) {
	return listing.Find(ctx, m.store, q, after, most)
}

// All returns all tasks that q means, as Find does page by page: summaries, without what their rounds printed, their logs
// and checkpoints. [tdf.Task.LastOutput] of such a task panics; [Manager.Task] reads it whole, and [Manager.Results]
// reads many with their outputs. An error is the last that comes.
func (m *Manager) All(ctx context.Context, q Query) iter.Seq2[*tdf.Task, error] {
	return listing.All(ctx, m.store, q)
}
