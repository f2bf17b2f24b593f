package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/redisstate"
)

// A failing store returns an error for the first calls. Unlike an outage, such an error ends the call at once.
type failing struct {
	broker.DirectStore
	// The fields claims and reports say how many more claims and reports fail. The field calls holds the number of all
	// claims and of the reports with a refused result.
	claims, reports, calls atomic.Int64
	refused                atomic.Int64 // the id of a task whose result every call refuses; 0 means no task
}

var errNoAuth = errors.New("NOAUTH Authentication required")

func (f *failing) claim(ctx context.Context, r redisstate.ClaimParams) (redisstate.ClaimResult, error) {
	f.calls.Add(1)
	if f.claims.Add(-1) >= 0 {
		return redisstate.ClaimResult{}, errNoAuth
	}
	_, c, _, err := f.DirectStore.Turn(ctx, ctx, r)
	return c, err
}

func (f *failing) Turn(
	ctx, claiming context.Context, r redisstate.ClaimParams, results ...rules.Move,
) (outcomes []redisstate.Outcome, c redisstate.ClaimResult, err, claimErr error) {
	if len(results) > 0 {
		outcomes, err = f.Execute(ctx, r.Worker, results...)
	}
	if r.Most > 0 {
		c, claimErr = f.claim(claiming, r)
	}
	return outcomes, c, err, claimErr
}

func (f *failing) Execute(ctx context.Context, worker string, results ...rules.Move) ([]redisstate.Outcome, error) {
	if f.reports.Add(-1) >= 0 {
		return nil, errNoAuth
	}
	if slices.ContainsFunc(results, func(m rules.Move) bool { return m.ID == f.refused.Load() }) {
		f.calls.Add(1)
		return nil, errors.New("ERR something unheard of")
	}
	return f.DirectStore.Execute(ctx, worker, results...)
}

// While claiming fails, a worker without sleeps does not claim in a tight loop, and a worker with a long sleep claims again soon.
func TestPauseAfterFailedClaims(t *testing.T) {
	for sleep, pause := range map[time.Duration]time.Duration{0: errorPause, time.Hour: longestPause} {
		claimsAgain(t, sleep, pause)
	}
}

func claimsAgain(t *testing.T, sleep, pause time.Duration) {
	t.Helper()
	w := newWorld(t)
	w.cfg.SleepAfterNoProcessClaimed = sleep
	w.script("p", good)
	id := w.open("")
	store := &failing{DirectStore: w.ofStore()}
	store.claims.Store(3)
	worker, timers := w.workerOn(store), w.timers.hold()
	stop := w.start(worker)
	for i := range int64(3) {
		timers.waitedFor(t, pause)
		expect.Equal(t, store.calls.Load(), i+1, "claims after", i, "pauses")
		timers.fire(t, pause)
	}
	w.executed(id)
	stop()
}

// While Redis refuses a result, the worker keeps it, and sends it again after growing pauses.
func TestResultIsKeptDuringErrors(t *testing.T) {
	w := newWorld(t)
	w.script("p", good)
	id := w.open("")
	store := &failing{DirectStore: w.ofStore()}
	store.reports.Store(5)
	worker, timers := w.workerOn(store), w.timers.hold()
	wait := w.background(t.Context(), worker)
	for _, pause := range []time.Duration{errorPause, 2 * errorPause, 4 * errorPause, 8 * errorPause, longestPause} {
		timers.fire(t, pause)
	}
	wait()
	got := w.task(id)
	expect.Equal(t, got.State, tdf.Succeeded)
	expect.Equal(t, got.LastOutput(), "good\n")
}

// A result that Redis refuses for longer than a lease is kept, and delays no other result.
func TestARefusedResultHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency = 2
	bad, good := w.open("bad"), w.open("good")
	store := &failing{DirectStore: w.ofStore()}
	store.refused.Store(bad)
	worker, both := w.workerOn(store), make(chan struct{}, 2)
	worker.runner = goRunner(func(_ context.Context, r *Round) (Ended, error) {
		both <- struct{}{}
		fmt.Fprintln(r.Stdout, "result")
		return Ended{}, nil
	})
	stop := w.start(worker)
	w.executed(good)
	eventually(t, "several tries", func() bool { return store.calls.Load() > 3 })
	expect.Equal(t, w.task(bad).State, tdf.Running, "the other task")
	store.refused.Store(0)
	expect.Equal(t, w.executed(bad).LastOutput(), "result\n", "the output of the refused task")
	stop()
}
