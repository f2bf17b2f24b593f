package audit

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Limits on the number of members that Overlooked reads from each list.
const (
	newestRead = 100
	sinceRead  = 2000
)

// Overlooked returns tasks whose entry in `due` is missing or too late, so that the server would not settle them in
// time. The original TDF moves tasks without writing entries in `due`. Overlooked checks the newest tasks of each list,
// and the tasks that have entered the list since the given time.
func (a Auditor) Overlooked(ctx context.Context, now, since task.Time) ([]int64, error) {
	var overlooked []int64
	for _, list := range []task.State{task.Running, task.Executed, rules.LegacyTimeout, rules.LegacyFailure} {
		ids, err := a.newest(ctx, list, since)
		if err != nil {
			return nil, err
		}
		if list == task.Running || list == task.Executed {
			if ids, err = a.notYetDue(ctx, list, ids, now); err != nil {
				return nil, err
			}
		}
		overlooked = append(overlooked, ids...)
	}
	return conn.Unique(overlooked), nil
}

// newest returns the newest tasks of a list, and the tasks that have entered it since a time. Most lists have few of
// them, so that one command reads all.
func (a Auditor) newest(ctx context.Context, list task.State, since task.Time) ([]int64, error) {
	doing, key := fmt.Sprintf("read the newest %s tasks", list), a.store.Keys.List(list)
	newest, err := conn.Ask(ctx, a.store.Conn, doing, func(r redis.Cmdable) *redis.ZSliceCmd {
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
		members, err = conn.Ask(ctx, a.store.Conn, doing, func(r redis.Cmdable) *redis.StringSliceCmd {
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
func (a Auditor) notYetDue(ctx context.Context, list task.State, ids []int64, now task.Time) ([]int64, error) {
	scores, err := a.scores(ctx, a.store.Keys.Due(), ids)
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
		later, err = a.withoutLease(ctx, later, now)
	}
	return append(notYetDue, later...), err
}

// withoutLease returns the tasks that have no valid lease.
func (a Auditor) withoutLease(ctx context.Context, ids []int64, now task.Time) ([]int64, error) {
	leases, err := conn.AskEach(ctx, a.store.Conn, "read the leases of tasks", ids,
		func(p redis.Pipeliner, id int64) *redis.StringCmd {
			return p.HGet(ctx, a.store.Keys.Task(id), "lease_until")
		})
	var without []int64
	for i, lease := range leases {
		if until, err := task.ParseTime(lease.Val()); err != nil || until < now {
			without = append(without, ids[i])
		}
	}
	return without, err
}

// ArchivedElsewhere returns ids of the list archived whose tasks have another state. It reads at most the given number
// of entries: those after the entry behind, with scores before the given time. It also returns the last entry that it
// has read. If no more entries follow, last is true.
func (a Auditor) ArchivedElsewhere(ctx context.Context, behind redisstate.ListEntry, before task.Time, most int) (
	ids []int64, next redisstate.ListEntry, last bool, err error,
) {
	entries, last, err := a.store.Find(ctx, redisstate.ListQuery{
		States: []task.State{task.Archived}, OldestFirst: true, Behind: &behind, Before: before,
	}, most)
	if err != nil || len(entries) == 0 {
		return nil, behind, last, err
	}
	all := redisstate.IDsOf(entries)
	states, err := conn.AskEach(ctx, a.store.Conn, "read the states of tasks", all,
		func(p redis.Pipeliner, id int64) *redis.StringCmd { return p.HGet(ctx, a.store.Keys.Task(id), "state") })
	for i, state := range states {
		if state.Val() != string(task.Archived) {
			ids = append(ids, all[i])
		}
	}
	return ids, entries[len(entries)-1], last, err
}
