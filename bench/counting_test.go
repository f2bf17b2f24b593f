package bench

import (
	"context"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
)

// BenchmarkCounting compares the lives of tasks with and without the counts of docs/metrics.md. It takes turns of some seconds, so that
// each turn has its own calls that add the counts to those in Redis. It reports what the counts cost, in percent of the time without them.
func BenchmarkCounting(b *testing.B) {
	const lives, batch = 1000, 10
	r := emptyRedis(b)
	plain, counting := newCaller(b, r), newCaller(b, r)
	counting.store.KeepCounts()
	var spent [2]struct{ took, redis float64 }
	for b.Loop() {
		for i, c := range []*caller{plain, counting} {
			took, redis, err := c.lives(b.Context(), r, lives, batch)
			if err != nil {
				b.Fatal(err)
			}
			spent[i].took, spent[i].redis = spent[i].took+took, spent[i].redis+redis
		}
	}
	tasks := float64(b.N * lives * batch)
	b.ReportMetric(spent[0].took/tasks*1e9, "ns/task")
	b.ReportMetric(spent[0].redis/tasks*1e9, "redis-ns/task")
	b.ReportMetric(100*(spent[1].took/spent[0].took-1), "cost-%")
	b.ReportMetric(100*(spent[1].redis/spent[0].redis-1), "redis-cost-%")
}

// lives opens batches of tasks, and brings each to its end. It returns the elapsed time and the CPU time of Redis in seconds.
func (c *caller) lives(ctx context.Context, r *redisserver.Server, n, batch int) (took, redis float64, err error) {
	before, err := r.Usage(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	for range n {
		if _, err := c.bring(ctx, batch, tdf.Archived); err != nil {
			return 0, 0, err
		}
	}
	took = time.Since(began).Seconds()
	after, err := r.Usage(ctx)
	return took, after.Minus(before).CPU, err
}
