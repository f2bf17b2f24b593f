package redisstate

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// afterRange is a hook that calls a function once, after the first page of a list was read.
type afterRange struct{ do func() }

func (r *afterRange) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *afterRange) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *afterRange) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		if do := r.do; c.Name() == "zrange" && do != nil {
			r.do = nil
			do()
		}
		return err
	}
}

// GiveUp skips no task, even if other tasks leave the list of running tasks meanwhile. It counts each task once.
func TestGiveUpWhileTasksEnd(t *testing.T) {
	s := newStore(t)
	const tasks, ending = maxTasksPerCall + 100, 600
	mustOpen(t, s, slices.Repeat([]tdf.Properties{define("a")}, tasks)...)
	mustClaim(t, s, tasks)
	_, since, err := s.TakeName(t.Context(), WorkerInfo{Name: "w", Lease: 60}, PriorOwner{})
	must(t, err)
	s.Redis.AddHook(&afterRange{func() {
		must(t, s.Redis.ZRemRangeByRank(t.Context(), s.Keys.List(tdf.Running), 0, ending-1).Err())
	}})
	n, err := s.GiveUp(t.Context(), "w", since)
	expect.True(t, err == nil && n <= tasks, n, err)
	now := expect.Result(s.Now(t.Context())).Value(t)
	due := expect.Result(dueTasks(t.Context(), s, now, 2*tasks)).Value(t)
	left := expect.Result(s.Redis.ZRange(t.Context(), s.Keys.List(tdf.Running), 0, -1).Result()).Value(t)
	missing := 0
	for _, id := range conn.IDsOf(left) {
		if !slices.ContainsFunc(due, func(d Due) bool { return d.ID == id }) {
			missing++
		}
	}
	if missing > 0 || len(left) != tasks-ending || n != len(due) {
		t.Errorf("%d of %d running tasks were skipped; GiveUp returned %d, and %d tasks are due", missing, len(left), n, len(due))
	}
}
