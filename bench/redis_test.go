package bench

import (
	"context"
	"log"
	"os"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/bench/redisserver"
)

// shared is one redis-server for all benchmarks that do not need a redis-server with other settings.
var shared = sync.OnceValues(func() (*redisserver.Server, error) { return redisserver.Start(redisserver.Shipped...) })

func TestMain(m *testing.M) {
	if redis := os.Getenv(apiVariable); redis != "" {
		if err := serveAPI(redis); err != nil {
			log.Fatal(err)
		}
		return
	}
	code := m.Run()
	if r, err := shared(); err == nil {
		r.Stop()
	}
	os.Exit(code)
}

// emptyRedis returns the shared redis-server, without any data.
func emptyRedis(t testing.TB) *redisserver.Server {
	r, err := shared()
	if err == nil {
		err = r.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// measure measures b.N calls of work, each for the given number of tasks. For each task, it reports the elapsed time,
// the CPU time of Redis, and the number of Redis commands. The number includes the commands that scripts call. It returns the
// CPU time of Redis in seconds.
func measure(b *testing.B, r *redisserver.Server, tasks int, work func(ctx context.Context, i int) error) float64 {
	b.Helper()
	ctx := b.Context()
	before, err := r.Usage(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		if err := work(ctx, i); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	after, err := r.Usage(ctx)
	if err != nil {
		b.Fatal(err)
	}
	used, all := after.Minus(before), float64(b.N*tasks)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/all, "ns/task")
	b.ReportMetric(used.CPU/all*1e9, "redis-ns/task")
	b.ReportMetric(used.Commands/all, "cmds/task")
	return used.CPU / all
}
