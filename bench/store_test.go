package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

// This file contains all calls to the store that the benchmarks make.

// A caller makes the calls of all components.
type caller struct {
	redis  config.Redis
	store  *redisstate.Store
	random *rand.Rand
	number int // the number of the last opened task
	output int // if not 0, each task prints this number of bytes
	tune   func(*tdf.Properties)

	offer *class.Offer // see [redisstate.ClaimParams]
}

func newCaller(t testing.TB, r *redisserver.Server) *caller {
	redis := config.Redis{Host: "127.0.0.1", Port: r.Port}
	store, err := redisstate.Connect(t.Context(), redis, "bench", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return &caller{redis: redis, store: store, random: rand.New(rand.NewPCG(1, 2))}
}

// hundred returns a text of 100 bytes that begins with a number.
func hundred(n int) string { return (fmt.Sprint(n, " ") + strings.Repeat("x", 100))[:100] }

// open opens n tasks.
func (c *caller) open(ctx context.Context, n int) error {
	tasks := make([]tdf.Properties, n)
	for i := range tasks {
		c.number++
		tasks[i] = tdf.Defaults("bench", "rsync:/srv/bench/run.sh", hundred(c.number))
		if c.tune != nil {
			c.tune(&tasks[i])
		}
	}
	_, err := c.store.Open(ctx, "manager", tasks...)
	return err
}

const lease = 600 // s

// claim claims n tasks. It makes one call, or several calls if the limits of a claim require that.
func (c *caller) claim(ctx context.Context, n int) ([]redisstate.Claim, error) {
	var claims []redisstate.Claim
	for len(claims) < n {
		got, err := c.store.Claim(ctx, redisstate.ClaimParams{Worker: "worker", Most: n - len(claims), Lease: lease, Offer: c.offer})
		if err != nil {
			return nil, err
		}
		if len(got.Claims) == 0 {
			return nil, fmt.Errorf("claimed %d of %d tasks", len(claims), n)
		}
		claims = append(claims, got.Claims...)
	}
	return claims, nil
}

// renew renews the leases of claims.
func (c *caller) renew(ctx context.Context, claims []redisstate.Claim) error {
	renewals := make([]redisstate.LeaseRenewal, len(claims))
	for i, claim := range claims {
		renewals[i] = redisstate.LeaseRenewal{ID: claim.Task.ID, Round: claim.Task.Round, Claim: claim.ID, Until: tdf.Never}
	}
	_, err := c.store.Renew(ctx, lease, renewals...)
	return err
}

// execute reports a result for each claim.
func (c *caller) execute(ctx context.Context, claims []redisstate.Claim) error {
	results, err := c.results(claims)
	if err != nil {
		return err
	}
	return firstError(c.store.Execute(ctx, "worker", results...))
}

// executeAndClaim reports a result for each claim, and claims the same number of tasks.
func (c *caller) executeAndClaim(ctx context.Context, claims []redisstate.Claim) ([]redisstate.Claim, error) {
	results, err := c.results(claims)
	if err != nil {
		return nil, err
	}
	r := redisstate.ClaimParams{Worker: "worker", Most: len(claims), Lease: lease}
	outcomes, claimed, err, claimErr := c.store.Turn(ctx, ctx, r, results...)
	if err := firstError(outcomes, errors.Join(err, claimErr)); err != nil {
		return nil, err
	}
	rest, err := c.claim(ctx, len(claims)-len(claimed.Claims)) // a call may claim fewer tasks than it asks for
	return append(claimed.Claims, rest...), err
}

func (c *caller) results(claims []redisstate.Claim) ([]tdf.Move, error) {
	results := make([]tdf.Move, len(claims))
	for i, claim := range claims {
		var err error
		if results[i], err = claim.Task.Execute(claim.ID, c.result(claim.Task)); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// result returns a result like those of a worker: no two tasks have the same start and resource usage.
func (c *caller) result(t *tdf.Task) tdf.Result {
	microseconds := func(most int) tdf.Seconds { return tdf.Seconds(1+c.random.IntN(most)) / 1e6 }
	const page = 4096
	output := hundred(int(t.ID))
	if c.output > 0 {
		output = strings.Repeat(output, c.output/len(output))
	}
	return tdf.Result{
		Output:     output,
		Exit:       "0",
		Started:    t.Current().Entered[tdf.Running].Add(microseconds(1000)),
		Seconds:    microseconds(5000),
		CPUSeconds: microseconds(3000),
		MaxRSS:     int64(500+c.random.IntN(1000)) * page,
	}
}

// settle settles n executed tasks as a server does. It returns an error if SettleUsual settles fewer tasks, because
// fewer tasks are due, or because a due task is not a usual success.
func (c *caller) settle(ctx context.Context, n int) error {
	now, err := c.store.Now(ctx)
	if err != nil {
		return err
	}
	if c.tune != nil { // such tasks are no usual successes
		return c.move(ctx, n, tdf.Executed, redisstate.Rules, func(t *tdf.Task) (tdf.Move, error) {
			m, ok := t.Settle(now, nil)
			if !ok {
				return m, errors.New("an executed task was not settled")
			}
			return m, nil
		})
	}
	for left := n; left > 0; {
		settled, others, err := c.store.SettleUsual(ctx, "server", tdf.UsualSuccess(), now, left)
		if err != nil {
			return err
		}
		if settled == 0 {
			return fmt.Errorf("%d of %d tasks were settled; %d others are due", n-left, n, len(others))
		}
		left -= settled
	}
	return nil
}

// archive archives n succeeded tasks as a manager does. It reads the whole tasks first.
func (c *caller) archive(ctx context.Context, n int) error {
	return c.move(ctx, n, tdf.Succeeded, redisstate.Whole, (*tdf.Task).Archive)
}

// remove removes n archived tasks.
func (c *caller) remove(ctx context.Context, n int) error {
	return c.move(ctx, n, tdf.Archived, redisstate.Rules, (*tdf.Task).Remove)
}

// move reads n tasks in a state, and moves them.
func (c *caller) move(ctx context.Context, n int, state tdf.State, fields redisstate.Fields, decide func(*tdf.Task) (tdf.Move, error)) error {
	ids, err := c.store.List(ctx, state, "", 0, int64(n))
	if err != nil {
		return err
	}
	if len(ids) < n {
		return fmt.Errorf("%d of %d tasks are %s", len(ids), n, state)
	}
	tasks, err := c.store.Read(ctx, ids, redisstate.Want{Fields: fields})
	if err != nil {
		return err
	}
	units := make([]redisstate.Unit, n)
	for i, t := range tasks {
		move, err := decide(t.Task)
		if err != nil {
			return err
		}
		units[i].Moves = []tdf.Move{move}
	}
	return firstError(c.store.Apply(ctx, "manager", units...))
}

// inState returns the number of tasks in a state.
func (c *caller) inState(ctx context.Context, s tdf.State) (int64, error) {
	counts, err := c.store.Counts(ctx)
	return counts[s], err
}

func firstError(outcomes []redisstate.Outcome, err error) error {
	for _, o := range outcomes {
		if err == nil {
			err = o.Err
		}
	}
	return err
}
