package server

import (
	"context"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

type auditStore interface {
	Overlooked(ctx context.Context, now, since task.Time) ([]int64, error)
	List(ctx context.Context, state task.State, group string, offset, limit int64) ([]int64, error)
	Walk(ctx context.Context, from walk.Page, limit int64) ([]int64, walk.Page, bool, error)
	Examine(ctx context.Context, ids []int64) ([]audit.Finding, error)
	ArchivedElsewhere(ctx context.Context, behind redisstate.ListEntry, before task.Time, most int) ([]int64,
		redisstate.ListEntry, bool, error)
	DanglingIDs(ctx context.Context, from audit.IndexPage, limit int64) ([]audit.Finding,
		audit.IndexPage, bool, error)
	ForgetWorkers(ctx context.Context, from int) (int, error)
	CleanFailures(ctx context.Context, cursor uint64) (uint64, error)
	KeepIndexNames(ctx context.Context, page audit.IndexPage) (audit.IndexPage, error)
}

// Limits for one round of the server.
const (
	headExamined = 20   // tasks at the head of the open list
	maxSuspects  = 1000 // suspects
)

// Every walkPause, the audit examines pagesPerWalk pages of the walk through all tasks and of the indexes of groups. If
// it examined one page in each round, an idle server would mainly wait for the answers to these small calls.
const (
	walkPause    = task.Seconds(10)
	pagesPerWalk = 10
	walkExamined = 50  // tasks in one page of the walk
	groupWalked  = 500 // ids in one page of the groups' indexes
)

// headPause is how long the audit does not examine a task at the head of the open list again.
const headPause = task.Seconds(60)

// auditGrace is how long an inconsistent task must stay unchanged before the audit repairs it: components of the
// original TDF may be in the middle of moving it, and take milliseconds.
const auditGrace = task.Seconds(60)

// clockSkew is the largest expected error of the clocks of the original TDF's components.
const clockSkew = task.Seconds(10)

// auditor finds due tasks that are not in $ns:due, and inconsistent tasks. Components of the original TDF, and edits by
// hand, may cause both. An inconsistent task that may be in the middle of a move is a suspect. The audit repairs a
// suspect only if the suspect has not changed for auditGrace (docs/guarantees.md, "The audit").
type auditor struct {
	store    auditStore
	grace    task.Seconds
	page     walk.Page
	indexes  audit.IndexPage
	looked   task.Time           // time of the last call of Overlooked
	walked   task.Time           // time of the last pages of the walk
	head     map[int64]task.Time // when the audit examined the tasks at the head of the open list
	suspects map[int64]suspicion
	programs keptPrograms
	archived redisstate.ListEntry // see adoptArchived
	failures uint64               // where the next call of CleanFailures continues
	workers  int                  // where the next call of ForgetWorkers continues
}

type suspicion struct {
	snapshot string    // the Snapshot of the finding
	since    task.Time // when the audit first found the task with this Snapshot
}

// suspect makes the next audit examine a task.
func (a *auditor) suspect(id int64) {
	if _, known := a.suspects[id]; !known && len(a.suspects) < maxSuspects {
		a.suspects[id] = suspicion{}
	}
}

// runAudit examines a page of tasks, and repairs those that are certainly inconsistent.
func (s *Server) runAudit(ctx context.Context, now task.Time) (Done, error) {
	done := Done{}
	walks := now.Sub(s.audit.walked) >= walkPause || now < s.audit.walked
	findings, err := s.audit.findings(ctx, now, walks)
	if err != nil {
		return done, err
	}
	now, grace, err := s.repairAll(ctx, findings, done)
	if err != nil {
		return done, err
	}
	if err := s.adoptArchived(ctx, now, done); err != nil || !walks {
		return done, err
	}
	for range pagesPerWalk {
		last, err := s.removeGhosts(ctx, done)
		if err != nil {
			return done, err
		}
		if last {
			break
		}
	}
	if s.audit.workers, err = s.store.ForgetWorkers(ctx, s.audit.workers); err != nil {
		return done, err
	}
	if s.audit.failures, err = s.store.CleanFailures(ctx, s.audit.failures); err != nil {
		return done, err
	}
	s.audit.walked = now
	return done, s.keepPrograms(ctx, now, grace)
}

// removeGhosts removes ids of tasks without a hash from one page of the indexes of groups and queues. An id without a
// hash would keep its group unfinished, and the Run of the group's manager would never end. It also keeps the sets of
// the names of all groups and queues. It reports whether the page was the last one.
func (s *Server) removeGhosts(ctx context.Context, done Done) (last bool, err error) {
	ghosts, next, last, err := s.store.DanglingIDs(ctx, s.audit.indexes, groupWalked)
	if err != nil {
		return false, err
	}
	if s.audit.indexes, err = s.store.KeepIndexNames(ctx, next); err != nil {
		return false, err
	}
	var moves []rules.Move
	for _, f := range ghosts {
		twice := slices.ContainsFunc(moves, func(m rules.Move) bool { return m.ID == f.ID })
		if !twice { // the next walk removes the id from its other indexes
			moves = append(moves, f.Repair)
		}
	}
	return last, s.apply(ctx, moves, done)
}

// findings returns the findings that may be repaired now.
func (a *auditor) findings(ctx context.Context, now task.Time, walks bool) ([]audit.Finding, error) {
	ids, err := a.ids(ctx, now, walks)
	if err != nil {
		return nil, err
	}
	found, err := a.store.Examine(ctx, ids)
	if err != nil {
		return nil, err
	}
	suspects := map[int64]suspicion{}
	var ripe []audit.Finding
	for _, f := range found {
		before := a.suspects[f.ID]
		switch {
		case f.Certain, before.snapshot == f.Snapshot && now.Sub(before.since) >= a.grace:
			ripe = append(ripe, f)
		case before.snapshot == f.Snapshot:
			suspects[f.ID] = before
		case len(suspects) < maxSuspects:
			suspects[f.ID] = suspicion{snapshot: f.Snapshot, since: now}
		}
	}
	a.suspects = suspects
	return ripe, nil
}

// ids returns the ids of the tasks that this audit examines:
//   - the suspects
//   - new tasks that are not in $ns:due
//   - tasks at the head of the open list that were not examined lately
//   - if walks is set, the next pages of the walk through all tasks
func (a *auditor) ids(ctx context.Context, now task.Time, walks bool) ([]int64, error) {
	ids := slices.Collect(maps.Keys(a.suspects))
	newest, err := a.store.Overlooked(ctx, now, max(0, a.looked.Add(-clockSkew)))
	if err != nil {
		return nil, err
	}
	a.looked = now
	head, err := a.newHead(ctx, now)
	if err != nil {
		return nil, err
	}
	ids = append(append(ids, newest...), head...)
	last := !walks
	if walks {
		a.programs.beginPart(now, a.page == walk.Page{})
	}
	for range pagesPerWalk {
		if last {
			break
		}
		var page []int64
		if page, a.page, last, err = a.store.Walk(ctx, a.page, walkExamined); err != nil {
			return nil, err
		}
		ids = append(ids, page...)
		a.programs.ids = append(a.programs.ids, page...)
		a.programs.ended = last
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// newHead returns the tasks at the head of the open list that were not examined within headPause.
func (a *auditor) newHead(ctx context.Context, now task.Time) (ids []int64, err error) {
	var head []int64
	for _, list := range rules.ListsOf(task.Open) {
		page, err := a.store.List(ctx, list, "", 0, headExamined)
		if err != nil {
			return nil, err
		}
		head = append(head, page...)
	}
	examined := map[int64]task.Time{}
	for _, id := range head {
		at, known := a.head[id]
		if !known || now < at || now.Sub(at) >= headPause {
			at, ids = now, append(ids, id)
		}
		examined[id] = at
	}
	a.head = examined
	return ids, nil
}
