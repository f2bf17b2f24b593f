package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/redisstate"
)

type linkStore interface {
	LinkWaiting(ctx context.Context) (int, error)
	AwaitedGroups(ctx context.Context, from, most int64) (groups, complete []string, next int64, err error)
	Unsuccessful(ctx context.Context, group string, after int64) (archived, others, next int64, err error)
	CompleteGroup(ctx context.Context, group string, archived, others int64) (more bool, err error)
}

// The server looks for complete groups in each round, and between rounds every linkPause. If its own moves may have
// made a group complete, or a wake token may say so, it looks at once. Each time, it looks at one page of groupsPerLook
// groups, and handles at most groupsPerTurn complete ones. For each complete group, it counts at most pagesPerCount
// pages of archived tasks.
const (
	linkPause     = time.Second
	groupsPerLook = 500
	groupsPerTurn = 10
	pagesPerCount = 10
	mostCounting  = 10_000 // groups whose counts the server remembers
)

// links holds the server's progress in the work on dependencies.
type links struct {
	looked   time.Time        // when the server last looked for complete groups
	rank     int64            // where the next page of groups begins
	awaited  bool             // tasks wait for groups
	woken    bool             // the server has got a wake token since it last looked
	behind   bool             // the last turn has left some of the work
	counting map[string]count // the complete groups whose tasks the server still counts
}

// A count is how far the server has counted the tasks of a complete group that did not succeed: the number of archived
// tasks so far, the number of all others, and the last id that was read. If the number of others changes, tasks were
// archived meanwhile, and the count begins again.
type count struct{ archived, others, after int64 }

// link links some of the waiting tasks, those that have waited for the longest time. It reports whether there were any:
// some of them may have become due. The server links tasks before it removes others, because Redis refuses to remove a
// task while tasks that may need it are not linked.
func (s *Server) link(ctx context.Context) (bool, error) {
	n, err := s.store.LinkWaiting(ctx)
	if n > 0 {
		s.links.looked = time.Time{} // from now on, the tasks may wait for a group
	}
	return n > 0, err
}

// putOffRefused puts off the removals that Redis has refused because unfinished tasks need the tasks or their outputs,
// or may need them. These tasks are due again later.
func (s *Server) putOffRefused(ctx context.Context, moves []rules.Move, outcomes []redisstate.Outcome) error {
	var later []redisstate.Unit
	for i, o := range outcomes {
		m := &moves[i]
		if o.Err != nil && m.Spoils() && !errors.As(o.Err, new(*rules.StateError)) {
			later = append(later,
				redisstate.Unit{Moves: []rules.Move{m.PutOff(!errors.Is(o.Err, redisstate.ErrUnlinked))}})
		}
	}
	if len(later) == 0 {
		return nil
	}
	_, err := s.store.Apply(ctx, s.name, later...)
	return err
}

// handleLinks handles complete groups. It reports whether tasks may have become due. The argument says whether the
// server has moved tasks since the last call.
func (s *Server) handleLinks(ctx context.Context, moved bool) (bool, error) {
	l := &s.links
	if s.clock().Sub(l.looked) < linkPause && !l.behind && !(l.awaited && (moved || l.woken)) {
		return false, nil
	}
	l.looked, l.behind, l.woken = s.clock(), true, false
	groups, complete, next, err := s.store.AwaitedGroups(ctx, l.rank, groupsPerLook)
	if err != nil {
		return false, err
	}
	l.awaited = len(groups) > 0 || l.rank > 0
	for group := range l.counting {
		if slices.Contains(groups, group) && !slices.Contains(complete, group) {
			delete(l.counting, group)
		}
	}
	if l.behind = len(complete) > groupsPerTurn; l.behind {
		complete, next = complete[:groupsPerTurn], l.rank
	}
	l.rank = next
	for _, group := range complete {
		if err := s.completeGroup(ctx, group); err != nil {
			return false, err
		}
	}
	return len(complete) > 0, nil
}

// completeGroup counts the tasks of a complete group that did not succeed. When all tasks are counted, it tells the
// dependents of the group. A later call continues the rest of the work.
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
		at = count{at.archived + archived, others, next}
		if next == 0 {
			delete(l.counting, group)
			more, err := s.store.CompleteGroup(ctx, group, at.archived, others)
			l.behind = l.behind || more
			return err
		}
	}
	l.counting[group] = at
	return nil
}
