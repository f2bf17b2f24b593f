// Package bench measures TDF: this file measures calls to Redis, and the folder peers compares TDF with other tools.
package bench

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A bench makes the calls of all components.
type bench struct {
	*testing.B
	redis *redisserver.Server
	store *redisstate.Store
	tune  func(n int, d *task.Properties)
	offer *class.Offer // see [redisstate.ClaimParams]
	tasks int          // opened so far
}

func newBench(b *testing.B) *bench {
	x := &bench{B: b, redis: expect.Result(redisserver.Start(redisserver.Shipped...)).Value(b), tune: func(int, *task.Properties) {}}
	b.Cleanup(x.redis.Stop)
	x.store = expect.Result(redisstate.Connect(b.Context(), config.Redis{Host: "127.0.0.1", Port: x.redis.Port}, "bench", slog.New(slog.DiscardHandler))).Value(b)
	b.Cleanup(func() { x.store.Close() })
	return x
}

// open opens n tasks with inputs of 100 bytes.
func (b *bench) open(n int) {
	tasks := make([]task.Properties, n)
	for i := range tasks {
		b.tasks++
		tasks[i] = task.Defaults("bench", "rsync:/srv/bench/run.sh", (fmt.Sprint(b.tasks) + strings.Repeat("x", 100))[:100])
		b.tune(b.tasks, &tasks[i])
	}
	expect.Result(b.store.Open(b.Context(), "manager", tasks...)).Value(b)
}

// claim claims n tasks. A call may claim fewer tasks than it asks for.
func (b *bench) claim(n int) (claims []redisstate.Claim) {
	for len(claims) < n {
		p := redisstate.ClaimParams{Worker: "worker", Most: n - len(claims), Lease: 600, Offer: b.offer}
		got := expect.Result(b.store.Claim(b.Context(), p)).Value(b)
		if len(got.Claims) == 0 && !got.More {
			b.Fatalf("claimed %d of %d tasks", len(claims), n)
		}
		claims = append(claims, got.Claims...)
	}
	return claims
}

func (b *bench) report(claims []redisstate.Claim) {
	results := make([]rules.Move, len(claims))
	for i, c := range claims {
		started := c.Task.Current().Entered[task.Running].Add(task.Seconds(1+i) / 1e6)
		result := rules.Result{Output: c.Task.Input, Exit: "0", Started: started, Seconds: 0.005, CPUSeconds: 0.003, MaxRSS: 4 << 20}
		results[i] = expect.Result(rules.Execute(c.Task, c.ID, result)).Value(b).Settled(c.Task, result)
	}
	b.moved(b.store.Execute(b.Context(), "worker", results...))
}

func (b *bench) moved(outcomes []redisstate.Outcome, err error) {
	for _, o := range append(outcomes, redisstate.Outcome{Err: err}) {
		expect.NoError(b, o.Err)
	}
}

func (b *bench) archive(n int) {
	ids := expect.Result(b.store.List(b.Context(), task.Succeeded, "", 0, int64(n))).Value(b)
	units := make([]redisstate.Unit, n)
	for i, found := range expect.Result(b.store.Read(b.Context(), ids, redisstate.Want{Fields: redisstate.Whole})).Value(b) {
		units[i].Moves = []rules.Move{expect.Result(rules.Archive(found.Task)).Value(b)}
	}
	b.moved(b.store.Apply(b.Context(), "manager", units...))
}

// measure measures b.N calls of work, each for a number of tasks. For each task, it reports the CPU time of Redis, and
// the number of commands with those that scripts call.
func (b *bench) measure(tasks int, work func(i int)) {
	b.Helper()
	before := expect.Result(b.redis.Usage(b.Context())).Value(b)
	b.ResetTimer()
	for i := range b.N {
		work(i)
	}
	b.StopTimer()
	after, all := expect.Result(b.redis.Usage(b.Context())).Value(b), float64(b.N*tasks)
	b.ReportMetric((after.CPU-before.CPU)/all*1e6, "redis-µs/task")
	b.ReportMetric((after.Commands-before.Commands)/all, "cmds/task")
}

// BenchmarkCalls measures the calls in the life of a task.
func BenchmarkCalls(b *testing.B) {
	for _, n := range []int{1, 1000} {
		var x *bench
		var claims []redisstate.Claim
		calls := []struct {
			name string
			do   func(i int)
		}{
			{"open", func(int) { x.open(n) }},
			{"claim", func(int) { claims = append(claims, x.claim(n)...) }},
			{"report", func(i int) { x.report(claims[i*n:][:n]) }},
			{"archive", func(int) { x.archive(n) }},
		}
		for i, call := range calls {
			b.Run(fmt.Sprintf("%s/tasks=%d", call.name, n), func(b *testing.B) {
				x, claims = newBench(b), nil
				for _, earlier := range calls[:i] {
					for k := range b.N {
						earlier.do(k)
					}
				}
				x.measure(n, call.do)
			})
		}
	}
}

// BenchmarkQueues measures what queues, priorities and requirements cost, in calls that open or claim 100 tasks.
func BenchmarkQueues(b *testing.B) {
	offer := class.Offer{Queues: []class.QueueShare{{Queue: "q"}, {Queue: class.DefaultQueue}}, Programs: true}
	for i := range 200 {
		offer.Tags = append(offer.Tags, fmt.Sprint("t", i))
	}
	for _, kind := range []struct {
		name string
		tune func(n int, d *task.Properties)
	}{
		{"none", func(int, *task.Properties) {}},
		{"queue", func(_ int, d *task.Properties) { d.Queue = "q" }},
		{"10 priorities", func(n int, d *task.Properties) { d.Queue, d.Priority = "q", n%10 }},
		{"10000 priorities", func(n int, d *task.Properties) { d.Queue, d.Priority = "q", n*7919%10_000 }},
		{"200 requirements", func(n int, d *task.Properties) { d.Queue, d.Tags = "q", []string{fmt.Sprint("t", n%200)} }},
	} {
		b.Run("open/"+kind.name, func(b *testing.B) {
			x := newBench(b)
			x.tune = kind.tune
			x.measure(100, func(int) { x.open(100) })
		})
		b.Run("claim/"+kind.name, func(b *testing.B) {
			x := newBench(b)
			x.tune, x.offer = kind.tune, &offer
			x.open(b.N * 100)
			x.measure(100, func(int) { x.claim(100) })
		})
	}
}

// BenchmarkOthers measures claims beside tasks that wait: of 1,000 requirements, of which a worker with so many tags
// serves 1, 8 or all, and of a paused group.
func BenchmarkOthers(b *testing.B) {
	for _, c := range []struct{ waiting, tags int }{{0, 0}, {1000, 0}, {1000, 3}, {1000, 10}, {100_000, 0}} {
		b.Run(fmt.Sprintf("waiting=%d/tags=%d", c.waiting, c.tags), func(b *testing.B) {
			x, kinds := newBench(b), 1000
			x.offer = &class.Offer{Queues: []class.QueueShare{{Queue: class.DefaultQueue}}, Programs: true}
			for i := range c.tags {
				x.offer.Tags = append(x.offer.Tags, fmt.Sprint("t", i))
			}
			x.tune = func(n int, d *task.Properties) {
				for i := 0; c.waiting <= 1000 && i < 10; i++ {
					if (n%kinds)>>i&1 == 1 {
						d.Tags = append(d.Tags, fmt.Sprint("t", i))
					}
				}
				if c.waiting > 1000 && n <= c.waiting {
					d.Group = "paused"
				}
			}
			expect.Result(x.store.Limits.Pause(b.Context(), "bench", task.Pausable{Group: "paused"})).OK(b)
			for range c.waiting / 1000 {
				x.open(1000)
			}
			kinds = min(1000, 1<<c.tags)
			x.open(b.N*100 + 1)
			x.claim(1) // it meets those that wait
			x.measure(100, func(int) { x.claim(100) })
		})
	}
}

// BenchmarkLimits measures what limit keys cost, in calls that claim 100 tasks and report their results.
func BenchmarkLimits(b *testing.B) {
	rate := task.Limit{AtMost: task.MaxAtMost, Starts: task.MaxStarts, Per: task.MinPer}
	for i, name := range []string{"none", "key", "number", "rate"} {
		b.Run(name, func(b *testing.B) {
			x := newBench(b)
			if i > 0 {
				x.tune = func(_ int, d *task.Properties) { d.LimitKey = "db" }
			}
			if i > 1 {
				limit := []task.Limit{{AtMost: task.MaxAtMost}, rate}[i-2]
				expect.NoError(b, x.store.Limits.SetLimit(b.Context(), "db", limit))
			}
			x.open(b.N * 100)
			x.measure(100, func(int) { x.report(x.claim(100)) })
		})
	}
}
