package redisstate

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Due identifies a due task.
type Due struct {
	ID    int64
	Score string // the task's score in `due`: the fence of the server's Move (see [rules.Move.Due])
}

// DueTasks returns the tasks that are due at the time now, at most the given number. A member that is not an id would
// stay in `due` for ever, and take the place of a task in each page. So DueTasks removes the member.
func (s *Store) DueTasks(ctx context.Context, now task.Time, most int) (due []Due, err error) {
	found, err := conn.Ask(ctx, s.Conn, "read due tasks", func(r redis.Cmdable) *redis.ZSliceCmd {
		return r.ZRangeByScoreWithScores(ctx, s.Keys.Due(), &redis.ZRangeBy{
			Min: "-inf", Max: now.String(), Count: int64(most),
		})
	})
	for _, z := range found {
		member, _ := z.Member.(string)
		ids, err := s.Conn.SoundIDs(ctx, s.Keys.Due(), member)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			due = append(due, Due{ID: id, Score: dueScore(z.Score)})
		}
	}
	return due, err
}

// NextDue returns the time at which the next task or the next check of held tasks becomes due, or Never, and the time
// now. A task that must be linked is due.
func (s *Store) NextDue(ctx context.Context) (next, now task.Time, err error) {
	var first, check, coming, link *redis.ZSliceCmd
	var clock *redis.TimeCmd
	err = s.Conn.Pipeline(ctx, "read when the next task is due", func(p redis.Pipeliner) {
		first, clock = p.ZRangeWithScores(ctx, s.Keys.Due(), 0, 0), p.Time(ctx)
		check = p.ZRangeWithScores(ctx, s.Keys.Held(), 0, 0)
		coming = p.ZRangeWithScores(ctx, s.Keys.Later(), 0, 0)
		link = p.ZRangeWithScores(ctx, s.Keys.Unlinked(), 0, 0)
	})
	if err != nil {
		return task.Never, 0, err
	}
	next = task.Never
	for _, due := range slices.Concat(first.Val(), check.Val(), coming.Val(), link.Val()) {
		next = min(next, task.Time(due.Score))
	}
	return next, task.At(clock.Val()), nil
}

// Limits on the number of members that Overlooked reads from each list.
const (
	newestRead = 100
	sinceRead  = 2000
)

// Overlooked returns tasks whose entry in `due` is missing or too late, so that the server would not settle them in
// time. The original TDF moves tasks without writing entries in `due`. Overlooked checks the newest tasks of each list,
// and the tasks that have entered the list since the given time.
func (s *Store) Overlooked(ctx context.Context, now, since task.Time) ([]int64, error) {
	var overlooked []int64
	for _, list := range []task.State{task.Running, task.Executed, rules.LegacyTimeout, rules.LegacyFailure} {
		ids, err := s.newest(ctx, list, since)
		if err != nil {
			return nil, err
		}
		if list == task.Running || list == task.Executed {
			if ids, err = s.notYetDue(ctx, list, ids, now); err != nil {
				return nil, err
			}
		}
		overlooked = append(overlooked, ids...)
	}
	return conn.Unique(overlooked), nil
}

// newest returns the newest tasks of a list, and the tasks that have entered it since a time. Most lists have few of
// them, so that one command reads all.
func (s *Store) newest(ctx context.Context, list task.State, since task.Time) ([]int64, error) {
	doing, key := fmt.Sprintf("read the newest %s tasks", list), s.Keys.List(list)
	newest, err := conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.ZSliceCmd {
		return r.ZRevRangeWithScores(ctx, key, 0, newestRead-1)
	})
	if err != nil {
		return nil, err
	}
	var members []string
	for _, z := range newest {
		members = append(members, z.Member.(string))
	}
	if len(newest) == newestRead && task.Time(newest[newestRead-1].Score) >= since {
		members, err = conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.StringSliceCmd {
			return r.ZRangeArgs(ctx, redis.ZRangeArgs{
				Key: key, ByScore: true, Rev: true, Start: "+inf",
				Stop: since.String(), Count: sinceRead,
			})
		})
	}
	return conn.Unique(conn.IDsOf(members)), err
}

// notYetDue returns the tasks whose entry in `due` is missing or too late. An executed task must be due now. A running
// task must be due now if it has no valid lease.
func (s *Store) notYetDue(ctx context.Context, list task.State, ids []int64, now task.Time) ([]int64, error) {
	scores, err := s.scores(ctx, s.Keys.Due(), ids)
	if err != nil {
		return nil, err
	}
	var notYetDue, later []int64
	for i, id := range ids {
		switch {
		case scores[i].Err() != nil:
			notYetDue = append(notYetDue, id)
		case task.Time(scores[i].Val()) > now.Add(1):
			later = append(later, id)
		}
	}
	if list == task.Running {
		later, err = s.withoutLease(ctx, later, now)
	}
	return append(notYetDue, later...), err
}

// withoutLease returns the tasks that have no valid lease.
func (s *Store) withoutLease(ctx context.Context, ids []int64, now task.Time) ([]int64, error) {
	leases, err := conn.AskEach(ctx, s.Conn, "read the leases of tasks", ids,
		func(p redis.Pipeliner, id int64) *redis.StringCmd {
			return p.HGet(ctx, s.Keys.Task(id), "lease_until")
		})
	var without []int64
	for i, lease := range leases {
		if until, err := task.ParseTime(lease.Val()); err != nil || until < now {
			without = append(without, ids[i])
		}
	}
	return without, err
}
