package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

type linkStore interface {
	Link(ctx context.Context, tasks ...*tdf.Task) error
	HandleEndings(ctx context.Context) (int, error)
	AwaitedGroups(ctx context.Context, from, most int64) (groups, complete []string, next int64, err error)
	Unsuccessful(ctx context.Context, group string, after int64) (archived, others, next int64, err error)
	RestoreUnderWay(ctx context.Context) (mark string, err error)
	CompleteGroup(ctx context.Context, group string, archived, others int64) (bool, error)
}

// The server looks for endings and for complete groups every linkPause. If its own moves may have made a group complete, it
// looks at once. Each time, it looks at one page of groupsPerLook groups. For each complete group, it counts at most
// pagesPerCount pages of archived tasks.
const (
	linkPause     = time.Second
	groupsPerLook = 500
	pagesPerCount = 10
	mostCounting  = 10_000 // groups whose counts the server remembers
)

// links holds the server's progress in the work on dependencies.
type links struct {
	looked   time.Time        // when the server last looked for endings and groups
	rank     int64            // where the next page of groups begins
	awaited  bool             // tasks wait for groups
	counting map[string]count // the complete groups whose tasks the server still counts
}

// A count is how far the server has counted the tasks of a complete group that did not succeed: the number of archived tasks
// so far, the number of all others, and the last id that was read. If the number of others changes, tasks were archived
// meanwhile, and the count begins again.
type count struct{ archived, others, after int64 }

// loadPause is how long the server puts off work on a task while a dump is being loaded: the linking of a waiting task, or a
// removal. The tasks that this task needs, or that need it, may not be loaded yet.
const loadPause = tdf.Seconds(1)

// isLoading reports whether a dump is being loaded. It asks Redis only if this matters for one of the decisions.
func (s *Server) isLoading(ctx context.Context, moves []tdf.Move, ok []bool) (bool, error) {
	if !slices.Contains(ok, false) && !slices.ContainsFunc(moves, func(m tdf.Move) bool { return m.Spoils() }) {
		return false, nil
	}
	mark, err := s.store.RestoreUnderWay(ctx)
	return mark != "", err
}

// afterMoves handles the endings of the tasks that the moves have finished. It reports whether tasks may have become due.
// These are the dependents of the finished tasks, and the tasks in waiting, which the server has just linked.
func (s *Server) afterMoves(ctx context.Context, waiting []*tdf.Task, moves []tdf.Move) (bool, error) {
	if len(waiting) > 0 {
		s.links.looked = time.Time{} // from now on, the tasks may wait for a group
	}
	if !slices.ContainsFunc(moves, func(m tdf.Move) bool { return m.Ends() }) {
		return len(waiting) > 0, nil
	}
	handled, err := s.handleEndings(ctx)
	return handled || len(waiting) > 0, err
}

// putOffRefused puts off the removals that Redis has refused because unfinished tasks need the tasks or their outputs. These
// tasks are due again later.
func (s *Server) putOffRefused(ctx context.Context, moves []tdf.Move, outcomes []redisstate.Outcome) error {
	var later []redisstate.Unit
	for i, o := range outcomes {
		m := &moves[i]
		if o.Err != nil && m.Spoils() && !errors.As(o.Err, new(*tdf.StateError)) {
			later = append(later, redisstate.Unit{Moves: []tdf.Move{m.PutOff()}})
		}
	}
	if len(later) == 0 {
		return nil
	}
	_, err := s.store.Apply(ctx, s.name, later...)
	return err
}

// handleEndings handles the endings in $ns:ended. It reports whether there were any.
func (s *Server) handleEndings(ctx context.Context) (any bool, err error) {
	for range maxBatches {
		n, err := s.store.HandleEndings(ctx)
		if err != nil || n == 0 {
			return any, err
		}
		any = true
		if err := s.heartbeatIfDue(ctx); err != nil {
			return any, err
		}
	}
	return any, nil
}

// look handles endings and complete groups. It reports whether tasks may have become due. The argument says whether the
// server has moved tasks since the last call.
func (s *Server) look(ctx context.Context, moved bool) (bool, error) {
	l := &s.links
	if time.Since(l.looked) < linkPause && !(moved && l.awaited) {
		return false, nil
	}
	l.looked = time.Now()
	ended, err := s.handleEndings(ctx)
	if err != nil {
		return ended, err
	}
	groups, complete, next, err := s.store.AwaitedGroups(ctx, l.rank, groupsPerLook)
	if err != nil {
		return ended, err
	}
	l.awaited = len(groups) > 0 || l.rank > 0
	l.rank = next
	for group := range l.counting {
		if slices.Contains(groups, group) && !slices.Contains(complete, group) {
			delete(l.counting, group)
		}
	}
	for _, group := range complete {
		if err := s.completeGroup(ctx, group); err != nil {
			return ended, err
		}
		if err := s.heartbeatIfDue(ctx); err != nil {
			return ended, err
		}
	}
	return ended || len(complete) > 0, nil
}

// completeGroup counts the tasks of a complete group that did not succeed. When all tasks are counted, it tells the
// dependents of the group. Otherwise, the next call continues the count.
func (s *Server) completeGroup(ctx context.Context, group string) error {
	l := &s.links
	if l.counting == nil || len(l.counting) > mostCounting {
		l.counting = map[string]count{}
	}
	at := l.counting[group]
	for range pagesPerCount {
		archived, others, next, err := s.store.Unsuccessful(ctx, group, at.after)
		if err != nil {
			return err
		}
		if at.after > 0 && at.others != others {
			at = count{}
			continue
		}
		if at = (count{at.archived + archived, others, next}); next == 0 {
			delete(l.counting, group)
			_, err := s.store.CompleteGroup(ctx, group, at.archived, others)
			return err
		}
	}
	l.counting[group] = at
	return nil
}
