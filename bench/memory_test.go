package bench

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
)

// BenchmarkMemory measures the memory of Redis per task.
func BenchmarkMemory(b *testing.B) {
	for _, redis := range []struct {
		name     string
		settings []string
	}{{"redis=shipped", redisserver.Shipped}, {"redis=defaults", nil}} {
		for _, state := range []tdf.State{tdf.Open, tdf.Executed, tdf.Archived} {
			b.Run(redis.name+"/state="+string(state), func(b *testing.B) {
				for range b.N {
					b.ReportMetric(memoryPerTask(b, 10_000, state, redis.settings), "B/task")
				}
			})
		}
	}
}

// memoryPerTask stores n tasks in a new Redis, and returns the memory per task in bytes.
func memoryPerTask(t testing.TB, n int, state tdf.State, settings []string) float64 {
	r, err := redisserver.Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	before, err := r.Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := newCaller(t, r)
	if _, err := c.bringMany(t.Context(), n, state); err != nil {
		t.Fatal(err)
	}
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := r.Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return (after - before) / float64(n)
}

func TestMemory(t *testing.T) {
	if bytes := memoryPerTask(t, 500, tdf.Executed, redisserver.Shipped); bytes < 200 || bytes > 20_000 {
		t.Errorf("%.0f bytes per task", bytes)
	}
}
