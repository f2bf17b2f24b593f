package server

import (
	"context"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

type auditor interface {
	Overlooked(ctx context.Context, now, since tdf.Time) ([]int64, error)
	List(ctx context.Context, state tdf.State, group string, offset, most int64) ([]int64, error)
	Walk(ctx context.Context, from redisstate.WalkPage, most int64) ([]int64, redisstate.WalkPage, bool, error)
	Examine(ctx context.Context, ids []int64) ([]redisstate.Finding, error)
	DanglingIDs(ctx context.Context, from redisstate.GroupPage, most int64) ([]redisstate.Finding, redisstate.GroupPage, bool, error)
}

// How many tasks of each kind one round examines.
const (
	headExamined = 20
	walkExamined = 50
	groupWalked  = 500
	mostSuspects = 1000
)

// clockSkew is how wrong the clocks may be that the original TDF's components go by.
const clockSkew = tdf.Seconds(10)

// audit finds what nobody made due: tasks that components of the original TDF, or hands,
// have moved. What may be a move that is still under way is only a suspicion until it looks
// the same after the grace (docs/guarantees.md, "The audit").
type audit struct {
	store    auditor
	grace    tdf.Seconds
	page     redisstate.WalkPage
	groups   redisstate.GroupPage
	looked   tdf.Time // when what had come was last looked at
	suspects map[int64]suspicion
}

type suspicion struct {
	sign  string
	since tdf.Time
}

// suspect has a task examined in the next round.
func (a *audit) suspect(id int64) {
	if _, known := a.suspects[id]; !known && len(a.suspects) < mostSuspects {
		a.suspects[id] = suspicion{}
	}
}

// audited examines a page and mends what is sure to be wrong.
func (s *Server) audited(ctx context.Context, now tdf.Time) (Done, error) {
	done := Done{}
	findings, err := s.audit.findings(ctx, now)
	if err != nil {
		return done, err
	}
	now, grace, err := s.watch.look(ctx)
	if err != nil {
		return done, err
	}
	var moves []tdf.Move
	for _, f := range findings {
		if f.Repair.Verb == "" || now < grace.Holds(&f.Repair) {
			continue
		}
		moves = append(moves, f.Repair)
	}
	if err := s.carryOut(ctx, moves, done); err != nil {
		return done, err
	}
	return done, s.removeGhosts(ctx, done)
}

// removeGhosts takes ids whose hash somebody deleted out of the next page of the groups' indexes: a manager
// that runs until its groups are done would wait for them.
func (s *Server) removeGhosts(ctx context.Context, done Done) error {
	ghosts, next, _, err := s.store.DanglingIDs(ctx, s.audit.groups, groupWalked)
	if err != nil {
		return err
	}
	s.audit.groups = next
	var moves []tdf.Move
	for _, f := range ghosts {
		twice := slices.ContainsFunc(moves, func(m tdf.Move) bool { return m.ID == f.ID }) // in two groups: the other one next time
		if !twice {
			moves = append(moves, f.Repair)
		}
	}
	return s.carryOut(ctx, moves, done)
}

// findings returns what may be mended now.
func (a *audit) findings(ctx context.Context, now tdf.Time) ([]redisstate.Finding, error) {
	ids, err := a.ids(ctx, now)
	if err != nil {
		return nil, err
	}
	found, err := a.store.Examine(ctx, ids)
	if err != nil {
		return nil, err
	}
	suspects := map[int64]suspicion{}
	var ripe []redisstate.Finding
	for _, f := range found {
		before := a.suspects[f.ID]
		switch {
		case f.Certain, before.sign == f.Snapshot && now.Sub(before.since) >= a.grace:
			ripe = append(ripe, f)
		case before.sign == f.Snapshot:
			suspects[f.ID] = before
		case len(suspects) < mostSuspects:
			suspects[f.ID] = suspicion{sign: f.Snapshot, since: now}
		}
	}
	a.suspects = suspects
	return ripe, nil
}

// ids are this round's: the suspects, what is new and not due, the head of the open list,
// and the next page of the walk through everything.
func (a *audit) ids(ctx context.Context, now tdf.Time) ([]int64, error) {
	ids := slices.Collect(maps.Keys(a.suspects))
	newest, err := a.store.Overlooked(ctx, now, max(0, a.looked.Add(-clockSkew)))
	if err != nil {
		return nil, err
	}
	a.looked = now
	head, err := a.store.List(ctx, tdf.Open, "", 0, headExamined)
	if err != nil {
		return nil, err
	}
	page, next, _, err := a.store.Walk(ctx, a.page, walkExamined)
	if err != nil {
		return nil, err
	}
	a.page = next
	ids = append(append(append(ids, newest...), head...), page...)
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
