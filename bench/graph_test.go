package bench

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
)

// BenchmarkGraphs measures what dependencies cost: graphs of several shapes are opened, executed and settled. The programs take no
// time. The graph without dependencies is the measure for the others.
func BenchmarkGraphs(b *testing.B) {
	for _, graph := range []struct {
		name  string
		tasks int
		after func(i int) []int // the distances to the tasks that task i waits for
	}{
		{"none", 100_000, func(int) []int { return nil }},
		{"chain", 10_000, func(int) []int { return []int{1} }},
		{"10000 dependents of one", 10_001, func(i int) []int { return []int{i} }},
		{"100 layers of 1000", 100_000, func(i int) []int { return []int{1000, 999} }},
	} {
		b.Run(graph.name, func(b *testing.B) {
			r := emptyRedis(b)
			c := newCaller(b, r)
			s := newServer(b, c)
			measure(b, r, graph.tasks, func(ctx context.Context, _ int) error {
				opened, err := c.store.OpenAll(ctx, "manager", "", graphOf(graph.tasks, graph.after)...)
				if err != nil {
					return err
				}
				return c.runAll(ctx, s, len(opened))
			})
		})
	}
}

// graphOf returns the definitions of a graph. A task does not wait for tasks before the first one.
func graphOf(n int, after func(i int) []int) []tdf.Properties {
	all := make([]tdf.Properties, n)
	for i := range all {
		all[i] = tdf.Defaults("bench", "rsync:/srv/bench/run.sh", "")
		var places []int
		for _, distance := range after(i) {
			if at := i - distance; at >= 0 && at < i {
				places = append(places, at)
			}
		}
		if len(places) > 0 {
			all[i].After = &tdf.Dependencies{Places: places}
		}
	}
	return all
}

// runAll executes and settles n tasks, each as soon as it can be claimed.
func (c *caller) runAll(ctx context.Context, s *server.Server, n int) error {
	for n > 0 {
		if _, err := s.RunOnce(ctx); err != nil {
			return err
		}
		for n > 0 {
			got, err := c.store.Claim(ctx, redisstate.ClaimParams{Worker: "worker", Most: 500, Lease: lease})
			if err != nil {
				return err
			}
			if len(got.Claims) == 0 {
				break
			}
			if err := c.execute(ctx, got.Claims); err != nil {
				return err
			}
			n -= len(got.Claims)
		}
	}
	return settleAll(ctx, s)
}
