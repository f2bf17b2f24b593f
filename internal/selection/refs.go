package selection

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// MostRefs is the largest number of tasks that one action changes at the request of a client.
const MostRefs = 100_000

// ErrMany means that a query selects, or names, more than [MostRefs] tasks.
var ErrMany = task.NewError(task.CodeInvalid, fmt.Sprintf("the filter has more than %d tasks or ids", MostRefs))

// ForRefs makes a query read what [Refs] needs.
func ForRefs(q *manager.Query) { q.Order, q.Read = manager.NewestFirst, manager.ReadSummary }

// Refs returns tasks in the rounds in which they are. The error is [ErrMany] if there are too many.
func Refs(tasks iter.Seq2[*manager.Task, error]) (refs []manager.Ref, err error) {
	for t, err := range tasks {
		if err != nil {
			return nil, err
		}
		if refs = append(refs, t.Ref()); len(refs) > MostRefs {
			return nil, ErrMany
		}
	}
	return refs, nil
}

// Count returns the number of tasks that [Refs] returns for a query, and the ids of the newest of them, at most the
// given number. If the query has only states and a group, Count does not read the tasks: Redis has their numbers.
func Count(ctx context.Context, m *manager.Manager, q manager.Query, newest int) (n int, ids []int64, err error) {
	if !reflect.DeepEqual(q, manager.Query{States: q.States, Group: q.Group, Order: q.Order, Read: q.Read}) {
		ForRefs(&q)
		refs, err := Refs(m.List(ctx, q))
		for _, r := range refs[:min(len(refs), newest)] {
			ids = append(ids, r.ID)
		}
		return len(refs), ids, err
	}
	var groups []string
	if q.Group != "" {
		groups = []string{q.Group}
	}
	counts, err := m.Counts(ctx, groups...)
	if err != nil {
		return 0, nil, err
	}
	for _, s := range task.States {
		if len(q.States) == 0 || slices.Contains(q.States, s) {
			n += int(counts[s])
		}
	}
	if n > MostRefs {
		return 0, nil, ErrMany
	}
	ForRefs(&q)
	page, err := m.Page(ctx, q, "", newest)
	for _, t := range page.Tasks {
		ids = append(ids, t.ID)
	}
	return n, ids, err
}
