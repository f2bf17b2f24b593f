package redisstate

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// A Keeping says for which blocked task a worker keeps resources back (docs/resources.md, "No task starves").
type Keeping struct {
	Worker string
	Task   int64     // the first task with the requirement for which the worker is kept
	Since  task.Time // when the worker was first kept for it
}

// Kept returns for which tasks the given workers are kept.
func (s *Store) Kept(ctx context.Context, workers []string) (all []Keeping, err error) {
	const what = "read for which tasks workers are kept"
	entries, err := conn.Ask(ctx, s.Conn, what, func(r redis.Cmdable) *redis.MapStringStringCmd {
		return r.HGetAll(ctx, s.Keys.Kept())
	})
	if err != nil {
		return nil, err
	}
	for name, entry := range entries {
		var first *redis.StringSliceCmd
		var plain *redis.ZSliceCmd
		var clock *redis.TimeCmd
		err := s.Conn.Pipeline(ctx, what, func(p redis.Pipeliner) {
			first, plain = p.ZRange(ctx, s.Keys.OpenSet(name), 0, 0), p.ZRangeWithScores(ctx, s.Keys.List(task.Open), 0, 0)
			clock = p.Time(ctx)
		})
		if err != nil {
			return nil, err
		}
		since, rest, _ := strings.Cut(entry, " ")
		till, by, _ := strings.Cut(rest, " ")
		end, _ := task.ParseTime(till)
		members := first.Val()
		for _, z := range plain.Val() { // the due tasks without a place have the plain requirement, and no priority
			id, _ := z.Member.(string)
			if at := task.Time(z.Score); name == class.Plain && at <= task.At(clock.Val()) {
				members = append(members, limits.Member(0, at, 0)+id)
			}
		}
		if end > task.At(clock.Val()) && slices.Contains(workers, by) && len(members) > 0 {
			k := Keeping{Worker: by, Task: limits.IDsOf([]string{slices.Min(members)})[0]}
			k.Since, _ = task.ParseTime(since)
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Keeping) int { return strings.Compare(a.Worker, b.Worker) })
	return all, nil
}
