package server

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/limits"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

type limitStore interface {
	HeldDue(ctx context.Context) (due []limits.Due, now tdf.Time, err error)
	LimitUses(ctx context.Context, keys ...string) ([]tdf.LimitUse, error)
	HeldFor(ctx context.Context, due []limits.Due, most []int) ([][]string, error)
	MoveLater(ctx context.Context) (more bool, err error)
	ReturnTasks(ctx context.Context, all []limits.Return) (int, error)
	Paused(ctx context.Context) ([]limits.Pausing, error)
	Workers(ctx context.Context) ([]presence.WorkerStatus, error)
	HeldSources(ctx context.Context, names ...string) ([]tdf.FailingSource, error)
	Started(ctx context.Context, source string) error
	CheckLimited(ctx context.Context) error
}

// pausedRecheck is the time after which the server checks a key again while the namespace is paused.
const pausedRecheck = tdf.Seconds(1)

// firstRead is the least number of waiting tasks of a key that the server reads while a queue or group is paused. If
// these tasks are paused, it reads more.
const firstRead = 20

// maxReturnBatches is the largest number of batches of keys that the server checks in one round, before it settles
// again.
const maxReturnBatches = 10

// returnHeld returns held tasks to their queues, as far as the limits of their keys have room, and when their groups
// are no longer paused (docs/lifecycle.md, "Limits per key"). It also makes tasks claimable whose time has come.
func (s *Server) returnHeld(ctx context.Context) (Done, error) {
	done, least := Done{}, firstRead
	for range maxReturnBatches {
		more, err := s.store.MoveLater(ctx)
		if err != nil {
			return done, err
		}
		if !more {
			break
		}
	}
	for range maxReturnBatches {
		due, now, err := s.store.HeldDue(ctx)
		if err != nil || len(due) == 0 {
			return done, err
		}
		n, held, more, err := s.returnDue(ctx, due, now, least)
		done.count("returned", n)
		if err != nil || !more {
			return done, err
		}
		if held {
			least = limits.MostReturned / len(due)
		}
	}
	return done, nil
}

// A check of held tasks: what the server has read about the reasons that are due, and what it decides.
type check struct {
	due     []limits.Due
	now     tdf.Time
	uses    map[string]tdf.LimitUse // by reason
	sources map[string]*sourceUse   // the held sources, by reason
	workers []presence.WorkerStatus // read only if sources are held
	paused  tdf.Paused

	returns []limits.Return
	wanted  []int // of a limit, how many tasks may start
	most    []int // how many held tasks to read
}

// returnDue checks reasons that are due. It returns the number of returned tasks. It also reports whether only paused
// tasks kept it from returning more, and whether more work may already be due.
func (s *Server) returnDue(ctx context.Context, due []limits.Due, now tdf.Time, least int) (n int, held,
	more bool, err error,
) {
	c := check{
		due: due, now: now, returns: make([]limits.Return, len(due)), wanted: make([]int, len(due)),
		most: make([]int, len(due)),
	}
	if c.uses, err = s.usesOf(ctx, due); err != nil {
		return 0, false, false, err
	}
	if err := s.readSources(ctx, &c); err != nil {
		return 0, false, false, err
	}
	if c.paused, err = s.paused(ctx); err != nil {
		return 0, false, false, err
	}
	for i := range due {
		c.plan(i, least)
	}
	n = fitting(c.most)
	more = n < len(due) || len(due) >= limits.MostDue
	c.due, c.most, c.returns = due[:n], c.most[:n], c.returns[:n]
	if err := s.readHeld(ctx, c.due, c.most, c.returns); err != nil {
		return 0, false, false, err
	}
	for i := range c.returns {
		again, onlyHeld := c.choose(i)
		more, held = more || again, held || onlyHeld
	}
	n, err = s.store.ReturnTasks(ctx, c.returns)
	return n, held, more, err
}

// plan decides how many held tasks of a reason the server reads, and when it looks again.
func (c *check) plan(i, least int) {
	r := &c.returns[i]
	r.Due = c.due[i]
	group, u := tdf.GroupOf(r.Reason), c.uses[r.Reason]
	switch {
	case group != "":
		r.Next = c.now.Add(tdf.LimitRecheck) // the end of the pause makes it due at once
		if !slices.Contains(c.paused, tdf.Pausable{Group: group}) {
			c.most[i] = limits.MostReturned
		}
	case tdf.SourceOf(r.Reason) != "":
		c.most[i], r.Next = c.sources[r.Reason].plan(c.now)
	default:
		c.wanted[i], r.Next = u.Return()
		c.most[i] = toRead(u, c.wanted[i], least, c.paused)
		if slices.Contains(c.paused, tdf.Everything) {
			r.Next = c.now.Add(pausedRecheck)
		}
	}
}

// choose decides which of the tasks that the server has read return. It reports whether more of them may return at
// once, and whether only pauses kept tasks of a limit from returning.
func (c *check) choose(i int) (again, onlyHeld bool) {
	r := &c.returns[i]
	if use := c.sources[r.Reason]; use != nil {
		r.Freed, r.Trial = use.choose(r.Tasks, c.workers, c.now)
		r.Tasks, r.More = nil, r.Trial == nil && c.most[i] > 0 && len(r.Freed)+len(r.Stale) >= c.most[i]
	} else if tdf.LimitOf(r.Reason) == "" {
		r.Freed, r.Tasks = r.Tasks, nil
		r.More = c.most[i] > 0 && len(r.Freed)+len(r.Stale) >= c.most[i]
	} else {
		r.LimitChoice = c.uses[r.Reason].Choose(r.Tasks, c.wanted[i], c.paused)
		onlyHeld = r.More && len(r.Freed) > 0
	}
	if r.More {
		r.Next = c.now
	}
	return r.More, onlyHeld
}

// usesOf returns how the limits are used that hold tasks, by reason.
func (s *Server) usesOf(ctx context.Context, due []limits.Due) (map[string]tdf.LimitUse, error) {
	var keys []string
	for i := range due {
		if key := tdf.LimitOf(due[i].Reason); key != "" {
			keys = append(keys, key)
		}
	}
	all, err := s.store.LimitUses(ctx, keys...)
	uses := map[string]tdf.LimitUse{}
	for _, u := range all {
		uses[tdf.LimitReason(u.Key)] = u
	}
	return uses, err
}

// fitting returns the number of keys, counted from the first, whose tasks fit into one call. The other keys stay due.
func fitting(most []int) int {
	tasks := 0
	for i, n := range most {
		if tasks += n; tasks > limits.MostReturned {
			return max(i, 1)
		}
	}
	return len(most)
}

// toRead returns how many waiting tasks of a key the server reads. If a queue or group is paused, some of the tasks may
// return without using the limit. So the server then reads at least the given number of tasks, even if it wants fewer.
// While the whole namespace is paused, no task returns.
func toRead(u tdf.LimitUse, wanted, least int, paused tdf.Paused) int {
	n := u.ToRead(wanted)
	switch {
	case slices.Contains(paused, tdf.Everything):
		return 0
	case len(paused) > 0 && wanted > 0:
		n = min(max(n, least), u.Waiting)
	}
	return min(n, limits.MostReturned)
}

// paused returns what is paused.
func (s *Server) paused(ctx context.Context) (paused tdf.Paused, err error) {
	all, err := s.store.Paused(ctx)
	for _, p := range all {
		paused = append(paused, p.Pausable)
	}
	return paused, err
}

// readHeld reads the first tasks that are held for each reason, and stores them in returns.
func (s *Server) readHeld(ctx context.Context, due []limits.Due, most []int, returns []limits.Return) error {
	members, err := s.store.HeldFor(ctx, due, most)
	if err != nil {
		return err
	}
	stored, err := s.store.Read(ctx, limits.IDsOf(slices.Concat(members...)), redisstate.Want{Fields: redisstate.Facts})
	if err != nil {
		return err
	}
	for i := range members {
		for k, t := range stored[:len(members[i])] {
			if t.Task != nil && t.Task.HeldFor() == due[i].Reason {
				returns[i].Tasks = append(returns[i].Tasks, t.Task)
			} else {
				returns[i].Stale = append(returns[i].Stale, members[i][k])
			}
		}
		stored = stored[len(members[i]):]
	}
	return nil
}
