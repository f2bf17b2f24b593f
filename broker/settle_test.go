package broker_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
)

// execute opens tasks, and reports a round of each: every second one has failed.
func execute(t *testing.T, s *redisstate.Store, n int) []int64 {
	t.Helper()
	d := tdf.Defaults("p", "rsync:/p/run.sh", "1")
	d.MaxFails, d.FailOn = 1, tdf.FailOnExit
	all := make([]tdf.Properties, n)
	for i := range all {
		all[i] = d
	}
	ids := expect.Result(s.Open(t.Context(), "m", all...)).Value(t)
	report(t, s, n)
	return ids
}

// report claims tasks, and reports a round of each: those with an even id have failed.
func report(t *testing.T, s *redisstate.Store, n int) {
	t.Helper()
	for left := n; left > 0; {
		c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: left, Lease: 60})).Value(t)
		var moves []tdf.Move
		for _, x := range c.Claims {
			moves = append(moves, expect.Result(x.Task.Execute(x.ID, tdf.Result{Exit: fmt.Sprint(1 - x.Task.ID%2)})).Value(t))
		}
		left -= len(moves)
		for _, o := range expect.Result(s.Execute(t.Context(), "w", moves...)).Value(t) {
			expect.NoError(t, o.Err)
		}
	}
}

// Settle decides as the server does: a task that has failed runs again as often as it may.
func TestSettle(t *testing.T) {
	t.Parallel()
	s := testspace.Connect(t, testspace.Config(t, redistest.Shared(t)))
	ids := execute(t, s, 4)
	open := expect.Result(s.Open(t.Context(), "m", tdf.Defaults("p", "rsync:/p/run.sh", "1"))).Value(t)
	for range 2 { // the second call finds nothing to settle
		expect.NoError(t, broker.Settle(t.Context(), s, "caller", append(ids, open[0], 1<<40)...))
	}
	for _, id := range ids {
		task := testspace.Read(t, s, id)
		if id%2 == 0 {
			expect.Equal(t, fmt.Sprintf("%s %d %d", task.State, task.Round, task.Fails), "open 1 1")
		} else {
			expect.Equal(t, fmt.Sprintf("%s %d %d", task.State, task.Round, task.Fails), "succeeded 0 0")
		}
		expect.Contains(t, task.Log, "caller")
	}
	expect.Equal(t, testspace.Read(t, s, open[0]).State, tdf.Open)
	expect.NoError(t, broker.Settle(t.Context(), s, "caller"))
}

// Callers of Settle and servers settle the same tasks at the same time. Each task is settled once, and nothing is
// inconsistent.
func TestSettleBesideServers(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	s := testspace.Connect(t, cfg)
	const n = 200
	ids := execute(t, s, n)
	for range 2 {
		var all sync.WaitGroup
		for i := range 2 {
			mine := testspace.Connect(t, cfg)
			all.Go(func() { expect.NoError(t, broker.Settle(t.Context(), mine, "caller", ids...)) })
			beside := server.New(fmt.Sprint("server", i), config.Server{}, testspace.Connect(t, cfg), testspace.Silent)
			all.Go(func() { expect.Result(beside.RunOnce(t.Context())).OK(t) })
		}
		all.Wait()
		counts := expect.Result(s.Counts(t.Context())).Value(t)
		if counts[tdf.Open] > 0 {
			report(t, s, n/2) // those that have failed, and fail once more
		}
	}
	for _, id := range ids {
		task := testspace.Read(t, s, id)
		want := "succeeded 0 0"
		if id%2 == 0 {
			want = "failed 1 2"
		}
		expect.Equal(t, fmt.Sprintf("%s %d %d", task.State, task.Round, task.Fails), want, "task", id)
	}
	expect.Len(t, expect.Result(s.Check(t.Context())).Value(t), 0, "findings of the audit")
}

// A first round that fails after claim_before, or in the last of the attempts, ends its task, although max_fails allows
// more.
func TestSettleTheLastAttempt(t *testing.T) {
	t.Parallel()
	s := testspace.Connect(t, testspace.Config(t, redistest.Shared(t)))
	now := expect.Result(s.Now(t.Context())).Value(t)
	d := tdf.Defaults("p", "rsync:/p/run.sh", "1")
	d.FailOn, d.MaxFails = tdf.FailOnExit, 5
	last, late := d, d
	last.MaxAttempts, late.ClaimBefore = 1, now.Add(300)
	expect.Result(s.Open(t.Context(), "m", last, last)).OK(t)
	report(t, s, 2)
	expect.NoError(t, broker.Settle(t.Context(), s, "caller", 1, 2))
	expect.Equal(t, testspace.Read(t, s, 2).State, tdf.Failed)
	expect.Result(s.Open(t.Context(), "m", late, late)).OK(t)
	c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 2, Lease: 60})).Value(t)
	expect.MustLen(t, c.Claims, 2, "claims")
	m := expect.Result(c.Claims[0].Task.Execute(c.Claims[0].ID, tdf.Result{Exit: "1"})).Value(t)
	testspace.Apply(t, s, m, nil)
	expect.NoError(t, broker.Settle(t.Context(), s, "caller", c.Claims[0].Task.ID))
	expect.Equal(t, testspace.Read(t, s, c.Claims[0].Task.ID).State, tdf.Open)
	next, _, err := s.NextDue(t.Context())
	expect.NoError(t, err)
	expect.Compare(t, next, "<=", late.ClaimBefore)
}

// A server leaves a reserved result to its reporter for a second, and then settles it.
func TestReserve(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	s := testspace.Connect(t, cfg)
	d := tdf.Defaults("p", "rsync:/p/run.sh", "1")
	expect.Result(s.Open(t.Context(), "m", d)).OK(t)
	c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t)
	expect.MustLen(t, c.Claims, 1, "claims")
	m := expect.Result(c.Claims[0].Task.Execute(c.Claims[0].ID, tdf.Result{Exit: "0"})).Value(t)
	broker.Reserve(&m)
	expect.NoError(t, expect.Result(s.Execute(t.Context(), "w", m)).Value(t)[0].Err)
	task := testspace.Read(t, s, 1)
	executed := task.Current().Entered[tdf.Executed]
	next, _, err := s.NextDue(t.Context())
	expect.NoError(t, err)
	expect.Compare(t, next.Sub(executed), ">=", 0.9)
	beside := server.New("server", config.Server{}, testspace.Connect(t, cfg), testspace.Silent)
	expect.Eventually(t, "the server settles the task", func() bool {
		expect.Result(beside.RunOnce(t.Context())).OK(t)
		return testspace.Read(t, s, 1).State == tdf.Succeeded
	})
	expect.True(t, expect.Result(s.Now(t.Context())).Value(t) >= next, "settled before its time")
}
