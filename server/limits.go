package server

import (
	"context"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

type limitStore interface {
	LimitsDue(ctx context.Context) (due []limits.Due, now tdf.Time, err error)
	LimitUses(ctx context.Context, keys ...string) ([]tdf.LimitUse, error)
	WaitingForLimits(ctx context.Context, keys []string, most []int) (ids [][]int64, stale [][]string, err error)
	ReturnTasks(ctx context.Context, all []limits.Return) (int, error)
	Paused(ctx context.Context) ([]limits.Pausing, error)
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

// returnWaiting returns waiting tasks to their queues, as far as the limits of their keys have room (docs/lifecycle.md,
// "Limits per key").
func (s *Server) returnWaiting(ctx context.Context) (Done, error) {
	done, least := Done{}, firstRead
	for range maxReturnBatches {
		due, now, err := s.store.LimitsDue(ctx)
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

// returnDue checks keys that are due. It returns the number of returned tasks. It also reports whether only paused
// tasks kept it from returning more, and whether more work may already be due.
func (s *Server) returnDue(ctx context.Context, due []limits.Due, now tdf.Time, least int) (n int, held,
	more bool, err error,
) {
	keys := make([]string, len(due))
	for i := range due {
		keys[i] = due[i].Key
	}
	uses, err := s.store.LimitUses(ctx, keys...)
	if err != nil {
		return 0, false, false, err
	}
	paused, err := s.paused(ctx, uses)
	if err != nil {
		return 0, false, false, err
	}
	returns, wanted, most := make([]limits.Return, len(due)), make([]int, len(due)), make([]int, len(due))
	for i, u := range uses {
		returns[i].Due = due[i]
		wanted[i], returns[i].Next = u.Return()
		most[i] = toRead(u, wanted[i], least, paused)
		if slices.Contains(paused, tdf.Everything) {
			returns[i].Next = now.Add(pausedRecheck)
		}
	}
	n = fitting(most)
	more = n < len(due) || len(due) >= limits.MostDue
	keys, most, returns = keys[:n], most[:n], returns[:n]
	if err := s.readWaiting(ctx, keys, most, returns); err != nil {
		return 0, false, false, err
	}
	for i := range returns {
		r := &returns[i]
		r.LimitChoice = uses[i].Choose(r.Tasks, wanted[i], paused)
		if r.More {
			r.Next, more, held = now, true, held || len(r.Freed) > 0
		}
	}
	n, err = s.store.ReturnTasks(ctx, returns)
	return n, held, more, err
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

// paused returns the pauses of queues, groups and the namespace. If no limit has room, it returns nothing, because no
// task can return then.
func (s *Server) paused(ctx context.Context, uses []tdf.LimitUse) (paused tdf.Paused, err error) {
	if !slices.ContainsFunc(uses, func(u tdf.LimitUse) bool { return u.Waiting > 0 && u.Room() > 0 }) {
		return nil, nil
	}
	all, err := s.store.Paused(ctx)
	for _, p := range all {
		paused = append(paused, p.Pausable)
	}
	return paused, err
}

// readWaiting reads the first waiting tasks of each key, and stores them in returns.
func (s *Server) readWaiting(ctx context.Context, keys []string, most []int, returns []limits.Return) error {
	ids, stale, err := s.store.WaitingForLimits(ctx, keys, most)
	if err != nil {
		return err
	}
	stored, err := s.store.Read(ctx, slices.Concat(ids...), redisstate.Want{Fields: redisstate.Facts})
	if err != nil {
		return err
	}
	for i := range ids {
		returns[i].Stale = stale[i]
		for _, t := range stored[:len(ids[i])] {
			if t.Task != nil && t.Task.WaitsForLimit() {
				returns[i].Tasks = append(returns[i].Tasks, t.Task)
			} else {
				returns[i].Stale = append(returns[i].Stale, strconv.FormatInt(t.ID, 10))
			}
		}
		stored = stored[len(ids[i]):]
	}
	return nil
}
