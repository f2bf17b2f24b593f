package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
)

// BenchmarkQueues measures what queues, priorities and partitions cost: calls that open 100 tasks, and calls that claim 100
// tasks. Tasks without them are the measure for the others.
func BenchmarkQueues(b *testing.B) {
	const batch = 100
	for _, kind := range []struct {
		name string
		tune func(n int, d *tdf.Properties)
	}{
		{"none", func(int, *tdf.Properties) {}},
		{"queue", func(_ int, d *tdf.Properties) { d.Queue = "q" }},
		{"10 priorities", func(n int, d *tdf.Properties) { d.Queue, d.Priority = "q", n%10 }},
		{"10000 priorities", func(n int, d *tdf.Properties) { d.Queue, d.Priority = "q", n*7919%10_000 }},
		{"200 partitions", func(n int, d *tdf.Properties) { d.Queue, d.Tags = "q", []string{fmt.Sprint("t", n%200)} }},
	} {
		offer := class.Offer{Queues: []class.QueueShare{{Queue: "q"}, {Queue: class.DefaultQueue}}, Programs: true}
		for i := range 200 {
			offer.Tags = append(offer.Tags, fmt.Sprint("t", i))
		}
		prepare := func(b *testing.B) (*caller, *redisserver.Server) {
			r := emptyRedis(b)
			c := newCaller(b, r)
			c.tune = func(d *tdf.Properties) { kind.tune(c.number, d) }
			c.offer = &offer
			return c, r
		}
		b.Run("open/"+kind.name, func(b *testing.B) {
			c, r := prepare(b)
			measure(b, r, batch, func(ctx context.Context, _ int) error { return c.open(ctx, batch) })
		})
		b.Run("claim/"+kind.name, func(b *testing.B) {
			c, r := prepare(b)
			if _, err := c.bringMany(b.Context(), b.N*batch, tdf.Open); err != nil {
				b.Fatal(err)
			}
			measure(b, r, batch, func(ctx context.Context, _ int) error {
				_, err := c.claim(ctx, batch)
				return err
			})
		})
	}
}

// BenchmarkPartitions measures a claim of one task. With 10,000 partitions, it must cost at most twice as much as with one.
func BenchmarkPartitions(b *testing.B) {
	const many, enough = 10_000, 200 // calls; fewer say little about the cost
	cost := map[int]float64{}
	for _, partitions := range []int{1, many} {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			r := emptyRedis(b)
			c := newCaller(b, r)
			c.tune = func(d *tdf.Properties) { d.Program, d.Source = fmt.Sprint("p", c.number%partitions), "" }
			c.offer = &class.Offer{Anything: true}
			for range max(many, b.N)/1000 + 1 {
				if err := c.open(b.Context(), 1000); err != nil {
					b.Fatal(err)
				}
			}
			used := measure(b, r, 1, func(ctx context.Context, _ int) error {
				_, err := c.claim(ctx, 1)
				return err
			})
			if b.N >= enough {
				cost[partitions] = used
			}
		})
	}
	if cost[1] > 0 && cost[many] > 2*cost[1] {
		b.Errorf("a claim from %d partitions costs %.1f times as much as one from one partition; want at most 2", many, cost[many]/cost[1])
	}
}
