package server

import (
	"context"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// One round of the server reads at most archivedPages pages of the list archived.
const (
	archivedPages = 20
	archivedSize  = 1000
)

// adoptArchived completes tasks that managers of the original TDF have archived. Such a manager moves the id of a task
// to the list archived, and leaves its state. So the server reads each new entry of this list.
//
// The server reads each entry twice, with two positions in the list: at once, and after clockSkew. A manager whose
// clock is slow adds entries behind the first position. If a manager's clock is fast, its entries do not move the first
// position past the present.
func (s *Server) adoptArchived(ctx context.Context, now task.Time, done Done) error {
	if s.audit.archived == nil {
		since := redisstate.ListEntry{Order: float64(s.watch.earlier.Add(-clockSkew))}
		s.audit.archived = []redisstate.ListEntry{since, since}
	}
	slow, fast := now.Add(-clockSkew), now.Add(clockSkew)
	for i, upTo := range []struct{ before, position task.Time }{{fast, now}, {slow, slow}} {
		at := s.audit.archived[i]
		for range archivedPages {
			ids, next, last, err := s.store.ArchivedElsewhere(ctx, at, upTo.before, archivedSize)
			if err == nil && len(ids) > 0 {
				err = s.repair(ctx, ids, done)
			}
			if err != nil {
				return err
			}
			if at = next; at.Order > float64(upTo.position) {
				at = redisstate.ListEntry{Order: float64(upTo.position)}
			}
			s.audit.archived[i] = at
			if at != next || last || len(ids) > 0 { // after a page of repairs, the server first settles tasks
				break
			}
		}
	}
	return nil
}
