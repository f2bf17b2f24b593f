package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// batches are the numbers of tasks in a call.
var batches = []int{1, 10, 100, 1000}

func BenchmarkOpen(b *testing.B) {
	perBatch(b, tdf.None, func(c *caller, batch int, _ []redisstate.Claim) call {
		return func(ctx context.Context, _ int) error { return c.open(ctx, batch) }
	})
}

func BenchmarkClaim(b *testing.B) {
	perBatch(b, tdf.Open, func(c *caller, batch int, _ []redisstate.Claim) call {
		return func(ctx context.Context, _ int) error {
			_, err := c.claim(ctx, batch)
			return err
		}
	})
}

func BenchmarkRenew(b *testing.B) {
	perBatch(b, tdf.Running, func(c *caller, batch int, claims []redisstate.Claim) call {
		return func(ctx context.Context, i int) error { return c.renew(ctx, claims[i*batch:][:batch]) }
	})
}

func BenchmarkExecute(b *testing.B) {
	perBatch(b, tdf.Running, func(c *caller, batch int, claims []redisstate.Claim) call {
		return func(ctx context.Context, i int) error { return c.execute(ctx, claims[i*batch:][:batch]) }
	})
}

// BenchmarkTurn measures the calls of a busy worker. One call reports results, and claims the same number of
// tasks.
func BenchmarkTurn(b *testing.B) {
	for _, batch := range batches {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			r := emptyRedis(b)
			c := newCaller(b, r)
			claims, err := c.bringMany(b.Context(), batch, tdf.Running)
			if err == nil {
				_, err = c.bringMany(b.Context(), b.N*batch, tdf.Open)
			}
			if err != nil {
				b.Fatal(err)
			}
			measure(b, r, batch, func(ctx context.Context, _ int) error {
				claims, err = c.executeAndClaim(ctx, claims)
				return err
			})
		})
	}
}

func BenchmarkSettle(b *testing.B) {
	perBatch(b, tdf.Executed, func(c *caller, batch int, _ []redisstate.Claim) call {
		return func(ctx context.Context, _ int) error { return c.settle(ctx, batch) }
	})
}

func BenchmarkArchive(b *testing.B) {
	perBatch(b, tdf.Succeeded, func(c *caller, batch int, _ []redisstate.Claim) call {
		return func(ctx context.Context, _ int) error { return c.archive(ctx, batch) }
	})
}

// BenchmarkLife measures the calls from the opening of a task to its archiving. Each call has the same number of tasks.
func BenchmarkLife(b *testing.B) {
	perBatch(b, tdf.None, func(c *caller, batch int, _ []redisstate.Claim) call {
		return func(ctx context.Context, _ int) error {
			_, err := c.bring(ctx, batch, tdf.Archived)
			return err
		}
	})
}

// A call is a function that makes the i-th call of a measurement.
type call func(ctx context.Context, i int) error

// perBatch measures a call for each number of tasks in batches. When the measurement begins, the tasks are in the given
// state.
func perBatch(b *testing.B, state tdf.State, prepare func(c *caller, batch int, claims []redisstate.Claim) call) {
	for _, batch := range batches {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			r := emptyRedis(b)
			c := newCaller(b, r)
			claims, err := c.bringMany(b.Context(), b.N*batch, state)
			if err != nil {
				b.Fatal(err)
			}
			measure(b, r, batch, prepare(c, batch, claims))
		})
	}
}

// bringMany opens n tasks and brings them into a state, with many calls.
func (c *caller) bringMany(ctx context.Context, n int, state tdf.State) ([]redisstate.Claim, error) {
	const most = 1000
	var all []redisstate.Claim
	for n > 0 {
		claims, err := c.bring(ctx, min(n, most), state)
		if err != nil {
			return nil, err
		}
		all = append(all, claims...)
		n -= most
	}
	return all, nil
}

// bring opens n tasks and brings them into a state, with one call for each transition. Before the call of bring, no
// task may be in a state that precedes the given state.
func (c *caller) bring(ctx context.Context, n int, state tdf.State) (claims []redisstate.Claim, err error) {
	for _, step := range []struct {
		from tdf.State // the state before the step
		do   func() error
	}{
		{tdf.None, func() error { return c.open(ctx, n) }},
		{tdf.Open, func() error { claims, err = c.claim(ctx, n); return err }},
		{tdf.Running, func() error { return c.execute(ctx, claims) }},
		{tdf.Executed, func() error { return c.settle(ctx, n) }},
		{tdf.Succeeded, func() error { return c.archive(ctx, n) }},
	} {
		if step.from == state {
			break
		}
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("from state %q: %w", step.from, err)
		}
	}
	return claims, nil
}

// A worker executes all tasks by calls of Turn.
func TestTurn(t *testing.T) {
	const batch, calls = 10, 3
	c := newCaller(t, emptyRedis(t))
	claims, err := c.bringMany(t.Context(), batch, tdf.Running)
	if err == nil {
		err = c.open(t.Context(), calls*batch)
	}
	for range calls {
		if err != nil {
			t.Fatal(err)
		}
		claims, err = c.executeAndClaim(t.Context(), claims)
	}
	executed, err2 := c.inState(t.Context(), tdf.Executed)
	if err != nil || err2 != nil || len(claims) != batch || executed != calls*batch {
		t.Errorf("%d claims, %d executed tasks; errors %v, %v", len(claims), executed, err, err2)
	}
}

// The benchmarks themselves do not run in tests, so this test makes each of their calls once.
func TestCalls(t *testing.T) {
	const n = 20
	for _, state := range []tdf.State{tdf.Open, tdf.Running, tdf.Executed, tdf.Succeeded, tdf.Archived} {
		t.Run(string(state), func(t *testing.T) {
			c := newCaller(t, emptyRedis(t))
			claims, err := c.bring(t.Context(), n, state)
			if err != nil {
				t.Fatal(err)
			}
			if state == tdf.Running {
				if err := c.renew(t.Context(), claims); err != nil {
					t.Error(err)
				}
			}
			if got, err := c.inState(t.Context(), state); got != n || err != nil {
				t.Errorf("%d tasks are %s, want %d; error %v", got, state, n, err)
			}
		})
	}
}
