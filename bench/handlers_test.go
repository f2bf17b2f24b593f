package bench

import (
	"context"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/worker"
)

// BenchmarkHandlers measures a worker with 50 slots, whose handler does nothing, from its start to its end. It also reports the CPU
// time of the worker per task (cpu-ns/task). With -benchmem, it reports the allocations per task. Use it with -benchtime 50000x.
func BenchmarkHandlers(b *testing.B) {
	c := newCaller(b, emptyRedis(b))
	if _, err := c.bringMany(b.Context(), b.N, tdf.Open); err != nil {
		b.Fatal(err)
	}
	before := cpuTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	ran := c.runHandlers(b, int64(b.N))
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/task")
	if executed, err := c.inState(b.Context(), tdf.Executed); ran != int64(b.N) || executed != ran || err != nil {
		b.Fatalf("of %d tasks, %d ran and %d were reported; error %v", b.N, ran, executed, err)
	}
}

// runHandlers runs a worker until it has run n tasks, and returns how many it ran.
func (c *caller) runHandlers(t testing.TB, n int64) int64 {
	cfg, err := config.DefaultWorker("bench")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Redis, cfg.Directory, cfg.Concurrency = c.redis, t.TempDir(), 50
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var ran atomic.Int64
	handler := worker.Handler(func(context.Context, *worker.Round) error {
		if ran.Add(1) == n {
			stop()
		}
		return nil
	})
	w, err := worker.New("worker", cfg, worker.WithLog(slog.New(slog.DiscardHandler)), worker.WithRunner(handler))
	if err == nil {
		err = w.Run(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ran.Load()
}

// cpuTime returns the CPU time of this process.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestHandlers(t *testing.T) {
	c := newCaller(t, emptyRedis(t))
	if _, err := c.bringMany(t.Context(), 100, tdf.Open); err != nil {
		t.Fatal(err)
	}
	if ran := c.runHandlers(t, 100); ran != 100 {
		t.Errorf("%d tasks ran", ran)
	}
}
