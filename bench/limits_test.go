package bench

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/redisstate"
)

// BenchmarkLimits measures what limit keys cost: calls that claim and execute 100 tasks with a key, the first claim that meets a
// task without room, and the return of a waiting task.
func BenchmarkLimits(b *testing.B) {
	const batch = 100
	limits := map[string]*tdf.Limit{
		"none": nil, "key": nil, "number": {AtMost: tdf.MaxAtMost}, "rate": {AtMost: tdf.MaxAtMost, Starts: tdf.MaxStarts, Per: tdf.MinPer},
	}
	prepare := func(b *testing.B, key string, limit *tdf.Limit) (*caller, *redisserver.Server) {
		r := emptyRedis(b)
		c := newCaller(b, r)
		c.tune = func(d *tdf.Properties) { d.LimitKey = key }
		if limit != nil {
			c.limit(b, *limit)
		}
		if err := c.open(b.Context(), b.N*batch); err != nil {
			b.Fatal(err)
		}
		return c, r
	}
	for _, name := range []string{"none", "key", "number", "rate"} {
		key := "db"
		if name == "none" {
			key = ""
		}
		b.Run("claim and execute/"+name, func(b *testing.B) {
			c, r := prepare(b, key, limits[name])
			measure(b, r, batch, func(ctx context.Context, _ int) error {
				claims, err := c.claim(ctx, batch)
				if err != nil {
					return err
				}
				return c.execute(ctx, claims)
			})
		})
	}
	b.Run("wait", func(b *testing.B) {
		c, r := prepare(b, "db", &tdf.Limit{AtMost: 0})
		measure(b, r, batch, func(ctx context.Context, i int) error {
			if i > 0 { // the first call makes all tasks wait
				return nil
			}
			return c.claimNothing(ctx)
		})
	})
	b.Run("return", func(b *testing.B) {
		c, r := prepare(b, "db", &tdf.Limit{AtMost: 0})
		if err := c.claimNothing(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := c.store.RemoveLimit(b.Context(), "db"); err != nil {
			b.Fatal(err)
		}
		s := newServer(b, c)
		measure(b, r, batch, func(ctx context.Context, i int) error {
			if i > 0 {
				return nil
			}
			return settleAll(ctx, s)
		})
	})
	b.Run("one after the other", func(b *testing.B) {
		c, r := prepare(b, "db", &tdf.Limit{AtMost: batch})
		s := newServer(b, c)
		measure(b, r, batch, func(ctx context.Context, _ int) error {
			got, err := c.store.Claim(ctx, redisstate.ClaimParams{Worker: "worker", Most: 2 * batch, Lease: lease})
			if err == nil {
				err = c.execute(ctx, got.Claims)
			}
			if err == nil {
				_, err = s.RunOnce(ctx)
			}
			return err
		})
	})
}

func (c *caller) limit(b *testing.B, l tdf.Limit) {
	if err := c.store.SetLimit(b.Context(), "db", l); err != nil {
		b.Fatal(err)
	}
}

// claimNothing claims until all due tasks wait because of the limit of their key.
func (c *caller) claimNothing(ctx context.Context) error {
	for {
		got, err := c.store.Claim(ctx, redisstate.ClaimParams{Worker: "worker", Most: 100, Lease: lease})
		if err != nil || !got.More {
			return err
		}
	}
}
