package server

import (
	"context"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

type auditStore interface {
	Overlooked(ctx context.Context, now, since tdf.Time) ([]int64, error)
	List(ctx context.Context, state tdf.State, group string, offset, limit int64) ([]int64, error)
	Walk(ctx context.Context, from redisstate.WalkPage, limit int64) ([]int64, redisstate.WalkPage, bool, error)
	Examine(ctx context.Context, ids []int64) ([]redisstate.Finding, error)
	DanglingIDs(ctx context.Context, from redisstate.GroupPage, limit int64) ([]redisstate.Finding, redisstate.GroupPage, bool, error)
}

// Limits for one round of the server: tasks at the head of the open list, tasks of the walk, ids in groups, and
// suspects.
const (
	headExamined = 20
	walkExamined = 50
	groupWalked  = 500
	maxSuspects  = 1000
)

// clockSkew is the largest expected error of the clocks of the original TDF's components.
const clockSkew = tdf.Seconds(10)

// audit finds due tasks that are not in $ns:due, and inconsistent tasks. Components of the original TDF, and edits by
// hand, may cause both. If a task may be in the middle of a move, it is a suspect. The audit repairs a suspect only if
// it has not changed for audit_grace (docs/guarantees.md, "The audit").
type audit struct {
	store    auditStore
	grace    tdf.Seconds
	page     redisstate.WalkPage
	groups   redisstate.GroupPage
	looked   tdf.Time // time of the last call of Overlooked
	suspects map[int64]suspicion
}

type suspicion struct {
	sign  string   // the Snapshot of the finding
	since tdf.Time // when the audit first found the task with this Snapshot
}

// suspect makes the next audit examine a task.
func (a *audit) suspect(id int64) {
	if _, known := a.suspects[id]; !known && len(a.suspects) < maxSuspects {
		a.suspects[id] = suspicion{}
	}
}

// runAudit examines a page of tasks, and repairs those that are certainly inconsistent.
func (s *Server) runAudit(ctx context.Context, now tdf.Time) (Done, error) {
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
	if err := s.apply(ctx, moves, done); err != nil {
		return done, err
	}
	return done, s.removeGhosts(ctx, done)
}

// removeGhosts removes ids without a hash from a page of the groups' indexes. Otherwise a manager that runs until its
// groups are finished would never end.
func (s *Server) removeGhosts(ctx context.Context, done Done) error {
	ghosts, next, _, err := s.store.DanglingIDs(ctx, s.audit.groups, groupWalked)
	if err != nil {
		return err
	}
	s.audit.groups = next
	var moves []tdf.Move
	for _, f := range ghosts {
		twice := slices.ContainsFunc(moves, func(m tdf.Move) bool { return m.ID == f.ID })
		if !twice { // if an id is in two groups, the next walk removes it from the second group
			moves = append(moves, f.Repair)
		}
	}
	return s.apply(ctx, moves, done)
}

// findings returns the findings that may be repaired now.
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
		case len(suspects) < maxSuspects:
			suspects[f.ID] = suspicion{sign: f.Snapshot, since: now}
		}
	}
	a.suspects = suspects
	return ripe, nil
}

// ids returns the ids of the tasks that this audit examines:
//   - the suspects
//   - new tasks that are not in $ns:due
//   - the head of the open list
//   - the next page of the walk through all tasks
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
