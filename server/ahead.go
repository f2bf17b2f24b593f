package server

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

type seer interface {
	FutureTasks(ctx context.Context, from redisstate.FuturePage, now tdf.Time, most int) ([]int64, redisstate.FuturePage, bool, error)
	FutureChecked(ctx context.Context) error
}

// Bounds of how many tasks a server looks ahead at before it does anything else. A page is one call of
// transact, so it keeps Redis from others for some ms.
const (
	aheadSize  = 200
	aheadPages = 4
)

// ahead goes through the tasks whose moment lies in the future, after Redis's clock was set back:
// open tasks get new scores, and `due` says when the server really must look at a task. Redis keeps
// that it has to be done, so a server that starts does what another one left; two servers do no harm.
type ahead struct {
	page redisstate.FuturePage
	back tdf.Time // the time that it was at the last look: the walk begins again if it was set back since
	busy bool     // there is more to do
}

// lookAhead makes some steps of the walk.
func (s *Server) lookAhead(ctx context.Context) (Done, error) {
	done := Done{}
	s.ahead.busy = false
	if !s.watch.kept.CheckFuture {
		s.ahead.page = redisstate.FuturePage{}
		return done, nil
	}
	for range aheadPages {
		now, g, err := s.watch.look(ctx)
		if err != nil || !g.CheckFuture {
			return done, err
		}
		if now < s.ahead.back {
			s.ahead.page = redisstate.FuturePage{}
		}
		s.ahead.back = now
		ids, next, last, err := s.store.FutureTasks(ctx, s.ahead.page, now, aheadSize)
		if err != nil {
			return done, err
		}
		if err := s.putRight(ctx, ids, done); err != nil {
			return done, err
		}
		s.ahead.page = next
		if last {
			s.ahead.page = redisstate.FuturePage{}
			return done, s.store.FutureChecked(ctx)
		}
	}
	s.ahead.busy = true
	return done, nil
}

// putRight mends what is surely wrong about some tasks.
func (s *Server) putRight(ctx context.Context, ids []int64, done Done) error {
	found, err := s.store.Examine(ctx, ids)
	if err != nil {
		return err
	}
	now, g, err := s.watch.look(ctx)
	if err != nil {
		return err
	}
	var moves []tdf.Move
	for i := range found {
		if m := &found[i].Repair; found[i].Certain && m.Verb != "" && now >= g.Holds(m) {
			moves = append(moves, *m)
		}
	}
	return s.carryOut(ctx, moves, done)
}
