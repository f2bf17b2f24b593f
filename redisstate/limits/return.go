package limits

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// MostReturned is the largest number of tasks that a call returns.
const MostReturned = 500

// If the next check of a reason is later than implausibleNext, the clock was set back. The second is a reserve for
// small corrections of the clock.
const implausibleNext = tdf.LimitRecheck + 1

// A Due is a reason whose held tasks the server must check.
type Due struct {
	Reason string // see [tdf.LimitReason]
	Score  string // its score in `held`, which fences the next check
}

// HeldDue returns at most 50 reasons whose held tasks the server must check now, and the present time. If the clock was
// set back, the next checks of some lie too far in the future. HeldDue returns these, too.
func (s *Limiter) HeldDue(ctx context.Context) (due []Due, now tdf.Time, err error) {
	var first, last *redis.ZSliceCmd
	var clock *redis.TimeCmd
	err = s.Pipeline(ctx, "read the held tasks to check", func(p redis.Pipeliner) {
		first, clock = p.ZRangeWithScores(ctx, s.Keys.Held(), 0, MostDue-1), p.Time(ctx)
		last = p.ZRevRangeWithScores(ctx, s.Keys.Held(), 0, MostDue-1)
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

// HeldFor returns the first members of the sets of tasks that are held for reasons: at most the given number for each.
// The tasks with the highest priority come first, and among them the oldest.
func (s *Limiter) HeldFor(ctx context.Context, due []Due, most []int) ([][]string, error) {
	pages := make([]*redis.StringSliceCmd, len(due))
	err := s.Pipeline(ctx, "read held tasks", func(p redis.Pipeliner) {
		for i := range due {
			if pages[i] = nil; most[i] > 0 {
				pages[i] = p.ZRange(ctx, s.Keys.OpenSet(due[i].Reason), 0, int64(most[i]-1))
			}
		}
	})
	members := make([][]string, len(due))
	for i, page := range pages {
		if page != nil {
			members[i] = page.Val()
		}
	}
	return members, err
}

// A Return says which tasks that are held for a reason return to their queues, and when the server checks it again.
type Return struct {
	Due
	tdf.LimitChoice
	Next  tdf.Time
	Stale []string  // members of the set of the reason that are no held tasks
	Trial *tdf.Task // tries the held source; nil for none
}

// ReturnTasks returns held tasks to their queues. The result is the number of returned tasks. A task that has
// changed since it was read stays where it is. If only some tasks cannot return, because another program has damaged
// their place, ReturnTasks returns the others, and an error.
func (s *Limiter) ReturnTasks(ctx context.Context, all []Return) (n int, err error) {
	e := &conn.Args{}
	e.Add(s.Keys.TaskPrefix())
	for _, r := range all {
		e.Add(r.Reason, r.Score, r.Next.String())
		var trials []*tdf.Task
		if r.Trial != nil {
			trials = append(trials, r.Trial)
		}
		e.Count(len(r.Tasks) + len(r.Passed) + len(r.Freed) + len(trials))
		addReturned(e, r.Tasks, (*tdf.Task).Place, tdf.Seconds(0).String())
		addReturned(e, r.Passed, (*tdf.Task).Place, tdf.ReturnPatience.String())
		addReturned(e, r.Freed, (*tdf.Task).Place, "")
		addReturned(e, trials, (*tdf.Task).TrialPlace, "")
		e.Strings(r.Stale)
	}
	const doing = "return held tasks"
	reply, err := s.Run(ctx, doing, lua.Unhold, []string{s.Keys.List(tdf.Open)}, e.All,
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

// addReturned adds tasks that return to these places. They count as returned before the given number of seconds. If age
// is "", they do not count.
func addReturned(e *conn.Args, tasks []*tdf.Task, place func(*tdf.Task) string, age string) {
	for _, t := range tasks {
		e.All = append(e.All, t.ID, t.Revision, place(t), age)
	}
}

// movedAtOnce is how many tasks MoveLater moves.
const movedAtOnce = 1000

// MoveLater makes tasks claimable whose time has come, and reports whether there are more of them.
func (s *Limiter) MoveLater(ctx context.Context) (more bool, err error) {
	reply, err := s.Run(ctx, "make tasks claimable whose time has come", lua.Later, []string{s.Keys.List(tdf.Open)},
		[]any{s.Keys.TaskPrefix(), movedAtOnce}, conn.IsNumber)
	return conn.Number(reply) == movedAtOnce, err
}
