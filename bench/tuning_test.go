package bench

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/redisstate"
)

// BenchmarkTuning compares the shipped zset-max-listpack-entries with Redis's default, 128, in turns. It measures the calls of a busy
// worker with 50 slots, half of which report in each call. It reports what the default costs, in percent of the CPU time of Redis.
func BenchmarkTuning(b *testing.B) {
	const setting, turns, batch = "zset-max-listpack-entries", 400, 25
	r := emptyRedis(b)
	c := newCaller(b, r)
	values := []string{c.store.Redis.ConfigGet(b.Context(), setting).Val()[setting], "128"}
	b.Cleanup(func() { c.store.Redis.ConfigSet(context.Background(), setting, values[0]) })
	var spent [2]float64
	for b.Loop() {
		for i, value := range values {
			err := r.Flush(b.Context())
			if err == nil {
				err = c.store.Redis.ConfigSet(b.Context(), setting, value).Err()
			}
			if err != nil {
				b.Fatal(err)
			}
			cpu, err := c.turns(b.Context(), r, turns, batch)
			if err != nil {
				b.Fatal(err)
			}
			spent[i] += cpu
		}
	}
	tasks := float64(b.N * turns * batch)
	b.ReportMetric(spent[0]/tasks*1e9, "redis-ns/task")
	b.ReportMetric(100*(spent[1]/spent[0]-1), "default-cost-%")
}

// turns makes n calls, each of which reports the half of the running tasks that was claimed earlier, and claims as many. It returns the
// CPU time of Redis in seconds.
func (c *caller) turns(ctx context.Context, r *redisserver.Server, n, batch int) (float64, error) {
	var halves [2][]redisstate.Claim
	_, err := c.bringMany(ctx, (n+2)*batch, tdf.Open)
	for i := range halves {
		if err == nil {
			halves[i], err = c.claim(ctx, batch)
		}
	}
	if err != nil {
		return 0, err
	}
	before, err := r.Usage(ctx)
	for i := range n {
		if err == nil {
			halves[i%2], err = c.executeAndClaim(ctx, halves[i%2])
		}
	}
	if err != nil {
		return 0, err
	}
	after, err := r.Usage(ctx)
	return after.Minus(before).CPU, err
}
