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
// The server reads an entry when it is clockSkew old, because a manager whose clock is slow adds entries behind others.
func (s *Server) adoptArchived(ctx context.Context, now task.Time, done Done) error {
	if s.audit.archived.Order == 0 {
		s.audit.archived.Order = float64(s.watch.earlier.Add(-clockSkew))
	}
	upTo := now.Add(-clockSkew)
	if s.audit.archived.Order > float64(upTo) { // Redis's clock was set back
		s.audit.archived = redisstate.ListEntry{Order: float64(upTo)}
	}
	for range archivedPages {
		ids, next, last, err := s.store.ArchivedElsewhere(ctx, s.audit.archived, upTo, archivedSize)
		if err == nil && len(ids) > 0 {
			err = s.repair(ctx, ids, done)
		}
		if err != nil {
			return err
		}
		s.audit.archived = next
		if last || len(ids) > 0 { // after a page of repairs, the server first settles tasks
			break
		}
	}
	return nil
}
