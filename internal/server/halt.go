package server

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/groups"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

type haltStore interface {
	Halts(ctx context.Context) ([]limits.Pausing, error)
	Counts(ctx context.Context, names ...string) (task.Counts, error)
	GroupMark(ctx context.Context, group string) (groups.Mark, error)
	Pause(ctx context.Context, who string, what ...task.Pausable) (int, error)
	Resume(ctx context.Context, who string, what ...task.Pausable) (int, error)
}

// haltKept is the time for which a halt waits for the first task of its group, or for the end of an unclosed group.
const haltKept = task.Seconds(24 * 3600)

// halt pauses the groups in which as many tasks have failed as their users allow (docs/lifecycle.md, "Pausing").
func (s *Server) halt(ctx context.Context, now task.Time) error {
	halts, err := s.store.Halts(ctx)
	for _, h := range halts {
		if err = cmp.Or(err, s.haltGroup(ctx, h, now)); err != nil {
			return err
		}
	}
	return err
}

// haltGroup pauses a group if enough of its tasks have failed. The halt is then over. It is also over when the group is
// complete. If the server ends between the pause and the end of the halt, the next round repeats both.
func (s *Server) haltGroup(ctx context.Context, h limits.Pausing, now task.Time) error {
	counts, err := s.store.Counts(ctx, h.Group)
	switch {
	case err != nil:
		return err
	case h.IsReached(counts):
		s.log.Warn("a campaign is paused, because tasks have failed", "campaign", h.Group, "failures", h.Failures)
		why := fmt.Sprintf("the server %s, because %d of its tasks have failed", s.name, h.Failures)
		if _, err := s.store.Pause(ctx, why, task.Pausable{Group: h.Group}); err != nil {
			return err
		}
	case counts.Unfinished() > 0:
		return nil
	default:
		mark, err := s.store.GroupMark(ctx, h.Group)
		if err != nil || !mark.Mark.IsComplete(counts) && now.Sub(h.Since) < haltKept {
			return err
		}
	}
	_, err = s.store.Resume(ctx, s.name, h.Pausable)
	return err
}
