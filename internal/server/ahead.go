package server

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

type aheadStore interface {
	FutureTasks(ctx context.Context, from audit.FuturePage, now task.Time, limit int) ([]int64,
		audit.FuturePage, bool, error)
	FutureChecked(ctx context.Context) error
}

// One call of lookAhead visits at most aheadPages pages of aheadSize tasks. Each page is one call of the script
// transact, which blocks Redis for some milliseconds.
const (
	aheadSize  = 200
	aheadPages = 4
)

// ahead is a walk through tasks with times in the future. A server makes the walk after Redis's clock was set back. The
// walk gives open tasks new scores, and corrects scores in $ns:due. Redis stores that the walk is needed, so that
// another server can finish it. Two servers may make the walk at the same time.
type ahead struct {
	page audit.FuturePage
	back task.Time // Redis's time at the last step; if Redis's clock is set back later, the walk restarts
	busy bool      // the walk is not finished
}

// lookAhead visits the next pages of the walk.
func (s *Server) lookAhead(ctx context.Context) (Done, error) {
	done := Done{}
	s.ahead.busy = false
	if !s.watch.kept.CheckFuture {
		s.ahead.page = audit.FuturePage{}
		return done, nil
	}
	for range aheadPages {
		now, g, err := s.watch.look(ctx)
		if err != nil || !g.CheckFuture {
			return done, err
		}
		if now < s.ahead.back {
			s.ahead.page = audit.FuturePage{}
		}
		s.ahead.back = now
		ids, next, last, err := s.store.FutureTasks(ctx, s.ahead.page, now, aheadSize)
		if err != nil {
			return done, err
		}
		if err := s.repair(ctx, ids, done); err != nil {
			return done, err
		}
		s.ahead.page = next
		if last {
			s.ahead.page = audit.FuturePage{}
			return done, s.store.FutureChecked(ctx)
		}
	}
	s.ahead.busy = true
	return done, nil
}

// repair examines tasks, and repairs those that are certainly inconsistent.
func (s *Server) repair(ctx context.Context, ids []int64, done Done) error {
	found, err := s.store.Examine(ctx, ids)
	if err != nil {
		return err
	}
	_, _, err = s.repairAll(ctx, slices.DeleteFunc(found, func(f audit.Finding) bool { return !f.Certain }), done)
	return err
}

// repairAll makes the repairs of findings that the grace period allows. It returns Redis's time and the grace period.
func (s *Server) repairAll(ctx context.Context, found []audit.Finding, done Done) (now task.Time, g rules.Grace,
	err error,
) {
	if now, g, err = s.watch.look(ctx); err != nil {
		return now, g, err
	}
	var moves []rules.Move
	for i := range found {
		if m := &found[i].Repair; m.Verb != "" && now >= g.Holds(m) {
			moves = append(moves, *m)
		}
	}
	return now, g, s.apply(ctx, moves, done)
}
