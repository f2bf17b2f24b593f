package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
	"github.com/tdf-framework/tdf/worker"
)

// primaries is the number of primaries of the cluster.
const primaries = 4

// BenchmarkShards runs tasks of handlers, in campaigns of 1, 2 and 4 shards on four primaries. It reports the CPU time
// of the busiest primary, and that of all primaries. Each shard has a server. With together, one worker serves all
// shards at once, and they share the speed of this machine, so that their calls are smaller. With apart, each shard has
// a worker of its own, and they run one after the other, as fast as if each had machines of its own.
func BenchmarkShards(b *testing.B) {
	b.Run("together", func(b *testing.B) { benchmarkShards(b, false) })
	b.Run("apart", func(b *testing.B) { benchmarkShards(b, true) })
}

func benchmarkShards(b *testing.B, apart bool) {
	nodes, at := startPrimaries(b)
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("shards=%d", n), func(b *testing.B) {
			names := namespacesOn(b, nodes[:n], fmt.Sprint("b", b.N, "-"))
			const perRun = 80_000
			var callers []*caller
			for _, name := range names {
				c := &caller{redis: at}
				var err error
				if c.store, err = redisstate.Connect(b.Context(), at, name, slog.New(slog.DiscardHandler)); err != nil {
					b.Fatal(err)
				}
				defer c.store.Close()
				callers = append(callers, c)
			}
			before := usages(b, nodes)
			b.ResetTimer()
			for range b.N {
				for i := 0; i < perRun; i += 200 {
					if err := callers[i/200%n].open(b.Context(), 200); err != nil {
						b.Fatal(err)
					}
				}
				if !apart {
					runShards(b, callers, names, perRun)
					continue
				}
				for i := range callers {
					runShards(b, callers[i:i+1], names[i:i+1], perRun/int64(n))
				}
			}
			b.StopTimer()
			busiest, sum, commands := 0.0, 0.0, 0.0
			for i, used := range usages(b, nodes) {
				used = used.Minus(before[i])
				if used.CPU > busiest {
					busiest, commands = used.CPU, used.Commands
				}
				sum += used.CPU
			}
			tasks := float64(b.N * perRun)
			b.ReportMetric(busiest/tasks*1e9, "busiest-ns/task")
			b.ReportMetric(commands/tasks, "busiest-cmds/task")
			b.ReportMetric(sum/tasks*1e9, "all-ns/task")
		})
	}
}

// runShards runs the open tasks of all namespaces, and waits until they have succeeded.
func runShards(b *testing.B, callers []*caller, names []string, tasks int64) {
	cfg, err := config.DefaultWorker(names[0])
	if err != nil {
		b.Fatal(err)
	}
	cfg.Redis, cfg.Namespaces, cfg.Directory, cfg.Concurrency = callers[0].redis, names, b.TempDir(), 200
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for i, c := range callers {
		s := server.New("server", config.Server{Redis: c.redis, Namespace: names[i], RoundDuration: time.Second}, c.store,
			slog.New(slog.DiscardHandler))
		running.Go(func() { _ = s.Run(ctx) })
	}
	var ran atomic.Int64
	working, end := context.WithCancel(ctx)
	handler := worker.Handler(func(context.Context, *worker.Round) error {
		if ran.Add(1) == tasks {
			end()
		}
		return nil
	})
	w, err := worker.New("worker", cfg, worker.WithLog(slog.New(slog.DiscardHandler)), worker.WithRunner(handler))
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Run(working); err != nil {
		b.Fatal(err)
	}
	for _, c := range callers {
		for {
			counts, err := c.store.Counts(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if counts.Unfinished() == 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// startPrimaries starts a Redis Cluster of primaries without replicas.
func startPrimaries(b *testing.B) (nodes []*redisserver.Server, at config.Redis) {
	for range primaries {
		r, err := redisserver.Start(append(redisserver.Shipped, "--cluster-enabled", "yes")...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(r.Stop)
		nodes = append(nodes, r)
		at.Cluster = append(at.Cluster, r.Addr())
	}
	for i, r := range nodes {
		ask(b, r, "CLUSTER", "ADDSLOTSRANGE", 16384*i/primaries, 16384*(i+1)/primaries-1)
		host, port, _ := net.SplitHostPort(r.Addr())
		for _, other := range nodes[:i] {
			ask(b, other, "CLUSTER", "MEET", host, port)
		}
	}
	for _, r := range nodes {
		for !strings.Contains(ask(b, r, "CLUSTER", "INFO"), "cluster_state:ok") {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nodes, at
}

// namespacesOn returns a namespace on each of the primaries.
func namespacesOn(b *testing.B, nodes []*redisserver.Server, prefix string) (names []string) {
	for i := range nodes {
		for k := 0; len(names) == i; k++ {
			name := fmt.Sprint(prefix, k)
			var slot int
			fmt.Sscan(ask(b, nodes[0], "CLUSTER", "KEYSLOT", "{"+name+"}"), &slot)
			if slot*primaries/16384 == i {
				names = append(names, name)
			}
		}
	}
	return names
}

func ask(b *testing.B, r *redisserver.Server, words ...any) string {
	client := redis.NewClient(&redis.Options{Addr: r.Addr(), Protocol: 2})
	defer client.Close()
	reply, err := client.Do(b.Context(), words...).Result()
	if err != nil {
		b.Fatal(err)
	}
	return fmt.Sprint(reply)
}

func usages(b *testing.B, nodes []*redisserver.Server) (all []redisserver.Usage) {
	for _, r := range nodes {
		u, err := r.Usage(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}
