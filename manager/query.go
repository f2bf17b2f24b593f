package manager

import (
	"context"
	"fmt"
	"iter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Query selects the tasks that meet all of its conditions. The zero Query selects all tasks.
type Query = task.Query

// An Order is the order in which a query returns tasks.
type Order = task.Order

// The orders.
const (
	NewestFirst = task.NewestFirst
	OldestFirst = task.OldestFirst
	ByID        = task.ByID // by ascending id, for any query; only List supports ByID
)

// Read selects which texts of the last run are read. All other fields of a summary are always read.
type Read = task.Read

// The values of Read. Each value includes the texts of the values above it.
const (
	ReadSummary = task.ReadSummary // only the texts that the Query searches
	ReadResult  = task.ReadResult  // also the result, for Task.Result
	ReadOutput  = task.ReadOutput  // also stdout and stderr, for Task.Output and Task.Error
)

// A Page is one part of the tasks that a query selects.
type Page struct {
	Tasks []*Task
	// Next is the cursor of the next page. On the last page it is "".
	Next string
	// Looked is the number of tasks that were read for this page. Redis can find tasks by state, group and time. To
	// check any other condition, Page must read each task.
	Looked int
}

// A QueryError is the reason why a [Query] or a cursor is invalid.
type QueryError = tdf.QueryError

// textsOf returns a function that says which texts of a task a query reads.
func textsOf(read Read) func(*task.Task) []redisstate.TextsOf {
	return func(t *task.Task) []redisstate.TextsOf {
		texts := []redisstate.TextsOf{listing.OfTask}
		if read != ReadSummary {
			texts = append(texts, redisstate.TextsOf{Round: t.LastRun(), Texts: task.TextResult})
		}
		if read == ReadOutput {
			texts = append(texts, redisstate.TextsOf{Round: t.LastRun(), Texts: task.TextOutput | task.TextError})
		}
		return texts
	}
}

// summary returns the summary of a task, with the texts that a query reads.
func summary(t *task.Task, read Read) *Task {
	v := TaskOf(t, false)
	switch read {
	case ReadSummary:
		v.hidden = []string{"result", "output", "output_whole", "error", "error_whole", "tail"}
	case ReadResult:
		v.hidden = []string{"output", "output_whole", "error", "error_whole", "tail"}
	}
	return v
}

// Get reads a whole task with all its rounds and their texts. If the task does not exist, the error wraps
// [tdf.ErrNoTask].
func (m *Manager) Get(ctx context.Context, id int64) (*Task, error) {
	stored, err := m.in().Store.ReadOne(ctx, id, redisstate.Want{Fields: redisstate.Whole})
	if err != nil {
		return nil, err
	}
	return TaskOf(stored.Task, true), nil // an invalid property is ignored here, because the server reports it
}

// Files returns the files that a round of a task has brought back, as a tar.gz with regular files alone
// (docs/programs.md, "Files that a round brings back"). It returns "" if there are none, or if they were removed. If
// the task does not exist, the error wraps [tdf.ErrNoTask].
func (m *Manager) Files(ctx context.Context, id int64, round int) (string, error) {
	stored, err := m.in().Store.ReadOne(ctx, id, redisstate.Want{
		Fields: redisstate.Head,
		Texts:  redisstate.SameTexts(redisstate.TextsOf{Round: round, Texts: task.TextFiles}),
	})
	if err != nil {
		return "", err
	}
	return stored.Task.Rounds.At(round).Packed, nil
}

// List returns all tasks that a query selects. It reads them in pages, so that few tasks are in memory at a time. If a
// task moves to another state meanwhile, List may return it twice or not at all. This cannot happen if the query has a
// Group, or if its order is ByID. After an error, List returns no more tasks. If the query is invalid, the error is a
// *[QueryError].
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
	return each(ctx, m.in().Store, q, textsOf(q.Read), func(t *task.Task) bool { return take(summary(t, q.Read)) })
}

// Page returns up to limit tasks that a query selects. The cursor of the first page is "". The cursor of any other page
// is the Next of the previous page. If a task stays in its state, it is on exactly one page. If the query has a Group,
// every selected task is on exactly one page.
//
// Page takes at most about half a second. So a page may contain fewer tasks, or none, although more pages follow. If
// the query or the cursor is invalid, the error is a *[QueryError].
func (m *Manager) Page(ctx context.Context, q Query, cursor string, limit int) (Page, error) {
	if q.Order == ByID && q.Group == "" {
		return Page{}, &QueryError{Problem: "list tasks: only List supports the order by id"}
	}
	if limit < 1 {
		return Page{}, &QueryError{Problem: fmt.Sprintf("list %d tasks: limit must be at least 1", limit)}
	}
	w, err := listing.New(ctx, m.in().Store, q, cursor)
	if err != nil {
		return Page{}, err
	}
	w.Add(textsOf(q.Read))
	found, err := w.Page(limit)
	page := Page{Next: found.Next, Looked: found.Looked}
	for _, t := range found.Tasks {
		page.Tasks = append(page.Tasks, summary(t, q.Read))
	}
	return page, err
}

// Counts returns the number of tasks in each state, all counted at one moment. It counts the tasks of the given groups,
// or all tasks if no group is given.
func (m *Manager) Counts(ctx context.Context, groups ...string) (tdf.Counts, error) {
	groups, err := scopeOf(groups)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	counts, err := m.in().Store.Counts(ctx, groups...)
	return counts, err
}
