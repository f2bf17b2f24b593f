package server

import (
	"context"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
)

type linkStore interface {
	Link(ctx context.Context, tasks ...*tdf.Task) error
	HandleEndings(ctx context.Context) (int, error)
	AwaitedGroups(ctx context.Context, from, most int64) (groups, complete []string, next int64, err error)
	Unsuccessful(ctx context.Context, group string, after int64) (n, next int64, err error)
	CompleteGroup(ctx context.Context, group string, unsuccessful int64) (bool, error)
}

// The server looks for complete groups every groupPause. If it knows that tasks wait for groups, it also looks after each of its
// moves. Each time, it looks at a page of groupsPerLook groups, and counts at most pagesPerCount pages of archived tasks.
const (
	groupPause    = time.Second
	groupsPerLook = 100
	pagesPerCount = 10
)

// links is what the server knows about the groups that tasks wait for.
type links struct {
	looked   time.Time        // when the server last looked at these groups
	rank     int64            // where the next page of groups begins
	awaited  map[string]bool  // the groups of the present walk, and of the walk before it
	walk     map[string]bool  // the groups of the present walk
	counting map[string]count // the complete groups whose tasks the server still counts
}

// A count is how far the server has counted the tasks of a complete group that did not succeed.
type count struct{ unsuccessful, after int64 }

// needs reports whether unfinished tasks may need the task, because they wait for its group.
func (l *links) needs(t *tdf.Task) bool { return t.Group != "" && l.awaited[t.Group] }

// link looks up the dependencies of waiting tasks, and handles the endings of the tasks that the moves have ended. It reports
// whether tasks may have become due.
func (s *Server) link(ctx context.Context, waiting []*tdf.Task, moves []tdf.Move) (bool, error) {
	if err := s.store.Link(ctx, waiting...); err != nil {
		return false, err
	}
	if len(waiting) > 0 {
		s.links.looked = time.Time{} // from now on, the tasks may wait for a group
	}
	if !slices.ContainsFunc(moves, func(m tdf.Move) bool { return m.Ends() }) {
		return len(waiting) > 0, nil
	}
	told, err := s.handleEndings(ctx)
	return told || len(waiting) > 0, err
}

// handleEndings handles the endings that are written down. It reports whether there were any.
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

// completeGroups tells tasks that the groups for which they wait are complete. It reports whether there are such groups. The caller
// says whether the server has moved tasks since the last call.
func (s *Server) completeGroups(ctx context.Context, moved bool) (bool, error) {
	l := &s.links
	if time.Since(l.looked) < groupPause && (!moved || len(l.awaited) == 0) {
		return false, nil
	}
	l.looked = time.Now()
	groups, complete, next, err := s.store.AwaitedGroups(ctx, l.rank, groupsPerLook)
	if err != nil {
		return false, err
	}
	l.record(groups, next)
	for _, group := range complete {
		if err := s.completeGroup(ctx, group); err != nil {
			return false, err
		}
	}
	return len(complete) > 0, nil
}

// record keeps a page of the groups that tasks wait for. A group that is in no page of a walk is no longer awaited.
func (l *links) record(groups []string, next int64) {
	if l.rank == 0 || l.walk == nil {
		l.walk = map[string]bool{}
	}
	if l.awaited == nil {
		l.awaited = map[string]bool{}
	}
	for _, group := range groups {
		l.walk[group], l.awaited[group] = true, true
	}
	if l.rank = next; next == 0 {
		l.awaited, l.walk = l.walk, nil
		for group := range l.counting {
			if !l.awaited[group] {
				delete(l.counting, group)
			}
		}
	}
}

// completeGroup counts the tasks of a complete group that did not succeed. After that, it tells the tasks that wait for the group.
func (s *Server) completeGroup(ctx context.Context, group string) error {
	l := &s.links
	if l.counting == nil {
		l.counting = map[string]count{}
	}
	at := l.counting[group]
	for range pagesPerCount {
		n, next, err := s.store.Unsuccessful(ctx, group, at.after)
		if err != nil {
			return err
		}
		if at = (count{at.unsuccessful + n, next}); next == 0 {
			delete(l.counting, group)
			_, err := s.store.CompleteGroup(ctx, group, at.unsuccessful)
			return err
		}
	}
	l.counting[group] = at
	return nil
}
