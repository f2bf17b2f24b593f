package selection

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

// MostRefs is the largest number of tasks that one action changes at the request of a client.
const MostRefs = 100_000

// ErrMany means that a query selects more than [MostRefs] tasks.
var ErrMany = tdf.NewError(tdf.CodeInvalid, fmt.Sprintf("the filter selects more than %d tasks", MostRefs))

// Refs returns the tasks that a query selects, in the rounds in which they are. The error is [ErrMany] if there are too many.
func Refs(ctx context.Context, m *manager.Manager, q manager.Query) (refs []manager.Ref, err error) {
	q.Order, q.Read = manager.NewestFirst, manager.ReadSummary
	for t, err := range m.List(ctx, q) {
		if err != nil {
			return nil, err
		}
		if refs = append(refs, t.Ref()); len(refs) > MostRefs {
			return nil, ErrMany
		}
	}
	return refs, nil
}
