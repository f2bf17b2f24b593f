package limits

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// MostReturned is the largest number of tasks that a call returns.
const MostReturned = 500

const (
	levelsAtOnce = 100 // priorities of a key that WaitingForLimits reads

	// If the next check of a key is later than this, the clock was set back. The second is a reserve for small
	// corrections of the clock.
	implausibleNext = tdf.LimitRecheck + 1
)

// A Due is a key whose waiting tasks the server must check.
type Due struct {
	Key   string
	Score string // the key's score in `limits_due`, which fences the next check
}

// LimitsDue returns at most 50 keys whose waiting tasks the server must check now, and the present time. If the clock
// was set back, the next checks of some keys lie too far in the future. LimitsDue returns these keys, too.
func (s *Limiter) LimitsDue(ctx context.Context) (due []Due, now tdf.Time, err error) {
	var first, last *redis.ZSliceCmd
	var clock *redis.TimeCmd
	err = s.Pipeline(ctx, "read the limits to check", func(p redis.Pipeliner) {
		first, clock = p.ZRangeWithScores(ctx, s.Keys.LimitsDue(), 0, MostDue-1), p.Time(ctx)
		last = p.ZRevRangeWithScores(ctx, s.Keys.LimitsDue(), 0, MostDue-1)
	})
	if err != nil {
		return nil, 0, err
	}
	now = tdf.At(clock.Val())
	add := func(all []redis.Z, isDue func(next tdf.Time) bool) {
		for _, z := range all {
			key, _ := z.Member.(string)
			if isDue(tdf.Time(z.Score)) && len(due) < MostDue {
				due = append(due, Due{key, strconv.FormatFloat(z.Score, 'f', -1, 64)})
			}
		}
	}
	add(first.Val(), func(next tdf.Time) bool { return next <= now })
	add(last.Val(), func(next tdf.Time) bool { return next > now.Add(implausibleNext) })
	return due, now, nil
}

const readWaiting = "read waiting tasks"

// WaitingForLimits returns the ids of tasks that wait because of the limits of keys. It returns at most the given
// number of ids for each key. The tasks with the highest priority come first, and among them the oldest.
func (s *Limiter) WaitingForLimits(ctx context.Context, keys []string, most []int) (ids [][]int64, stale [][]string,
	err error,
) {
	levels, err := conn.AskEach(ctx, s.Conn, readWaiting, keys,
		func(p redis.Pipeliner, key string) *redis.StringSliceCmd {
			return p.ZRevRange(ctx, s.Keys.Levels(tdf.LimitPart(key)), 0, levelsAtOnce-1)
		})
	if err != nil {
		return nil, nil, err
	}
	ids, stale = make([][]int64, len(keys)), make([][]string, len(keys))
	for first, next := 0, 1; first < levelsAtOnce; first, next = next, 2*next { // most keys have one priority
		pages := make([][]*redis.StringSliceCmd, len(keys))
		err := s.Pipeline(ctx, readWaiting, func(p redis.Pipeliner) {
			for i, key := range keys {
				pages[i] = nil
				all := levels[i].Val()
				for _, level := range all[min(first, len(all)):min(next, len(all))] {
					if left := most[i] - len(ids[i]); left > 0 {
						priority, _ := strconv.Atoi(level)
						pages[i] = append(pages[i], p.ZRange(ctx, s.Keys.Place(tdf.LimitPlace(key, priority)), 0,
							int64(left-1)))
					}
				}
			}
		})
		if err != nil {
			return nil, nil, err
		}
		for i, all := range pages {
			for _, page := range all {
				ids[i], stale[i] = appendWaiting(ids[i], stale[i], page.Val(), most[i])
			}
		}
		if !slices.ContainsFunc(pages, func(all []*redis.StringSliceCmd) bool { return len(all) > 0 }) {
			break
		}
	}
	return ids, stale, nil
}

// appendWaiting appends the members of a place to the ids of waiting tasks, up to the given number of ids. If a member
// is no id, it is stale.
func appendWaiting(ids []int64, stale, members []string, most int) ([]int64, []string) {
	for _, member := range members {
		id := conn.IDsOf([]string{member})
		switch {
		case len(id) == 0:
			stale = append(stale, member)
		case len(ids) < most:
			ids = append(ids, id...)
		}
	}
	return ids, stale
}

// A Return says which waiting tasks of a key return to their queues, and when the server checks the key again.
type Return struct {
	Due
	tdf.LimitChoice
	Next  tdf.Time
	Stale []string // members of the places of the key that are no waiting tasks
}

// ReturnTasks returns waiting tasks to their queues. The result is the number of returned tasks. A task that has
// changed since it was read stays where it is. If only some tasks cannot return, because another program has damaged
// their place, ReturnTasks returns the others, and an error.
func (s *Limiter) ReturnTasks(ctx context.Context, all []Return) (n int, err error) {
	e := &conn.Args{}
	e.Add(s.Keys.TaskPrefix(), s.Keys.ReturnedPrefix(), s.Keys.PassedPrefix())
	for _, r := range all {
		e.Add(r.Key, r.Score, r.Next.String())
		e.Count(len(r.Tasks) + len(r.Passed) + len(r.Freed))
		addReturned(e, r.Tasks, tdf.Seconds(0).String())
		addReturned(e, r.Passed, tdf.ReturnPatience.String())
		addReturned(e, r.Freed, "")
		e.Strings(r.Stale)
	}
	const doing = "return waiting tasks"
	reply, err := s.Run(ctx, doing, lua.LimitReturn, []string{s.Keys.LimitsDue(), s.Keys.List(tdf.Open)}, e.All,
		conn.Tuple(conn.IsNumber, conn.IsText))
	if err != nil {
		return 0, err
	}
	answer := conn.List(reply)
	if wrong := conn.Text(answer[1]); wrong != "" {
		err = conn.Failed(doing, errors.New(wrong))
	}
	return conn.Number(answer[0]), err
}

// returned encodes tasks that return to their queues. They count as returned before the given number of seconds. If age
// is "", they do not count.
func addReturned(e *conn.Args, tasks []*tdf.Task, age string) {
	for _, t := range tasks {
		e.All = append(e.All, t.ID, t.Revision, t.Place(), age)
	}
}
