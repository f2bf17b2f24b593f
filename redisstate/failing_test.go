package redisstate_test

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// fillFailing writes entries of failing sources, and holds them or not.
func fillFailing(t *testing.T, s *redisstate.Store, n int, held bool) {
	t.Helper()
	now := clockOf(t, s).String()
	for i := range n {
		name := fmt.Sprint(i)
		fields := []string{name, now + " " + now + " 1\np\nwhy\nw"}
		expect.NoError(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Failing(), fields).Err())
		if held {
			expect.NoError(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Paused(), task.SourceReason(name), now+" server").Err())
		}
	}
}

// Redis remembers a bounded number of failing sources, and forgets none that is held.
func TestFailingSourcesAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for _, held := range []bool{false, true} {
			fillFailing(t, s, 1000, held)
			for _, name := range []string{"new", "newer"} {
				expect.NoError(t, s.Limits.FailedToStart(t.Context(), "w", name, false, "p", "why"))
			}
			all := expect.Result(s.Conn.Redis.HGetAll(t.Context(), s.Keys.Failing()).Result()).Value(t)
			expect.Compare(t, len(all), "<=", 1000, held)
			expect.Equal(t, all["newer"] != "", !held)
			if held {
				expect.Len(t, expect.Result(s.Limits.HeldSources(t.Context())).Value(t), 1000)
				expect.Len(t, all, 1000)
			}
			expect.NoError(t, s.Conn.Redis.Del(t.Context(), s.Keys.Failing()).Err())
		}
	})
}

// A task that tries a held source returns a second after the hold began, and others after twice as long each time. A claim
// holds the other tasks.
func TestOneTrialOfAHeldSource(t *testing.T) {
	t.Parallel()
	clock, s := withHandClock(t)
	ids := mustOpen(t, s, define("1"), define("2"), define("3"))
	source := read(t, s, ids[0]).SourceName()
	for _, worker := range []string{"v", "w"} {
		expect.NoError(t, s.Limits.FailedToStart(t.Context(), worker, source, false, "p", "why"))
	}
	expect.Len(t, claimAll(t, s, 3), 0)
	expect.Equal(t, returnWaiting(t, s), 0)
	clock.pass(1)
	expect.Equal(t, returnWaiting(t, s), 1)
	expect.Equal(t, returnWaiting(t, s), 0)
	expect.Equal(t, claimAll(t, s, 3), ids[:1])
	for i, pass := range []float64{.5, .5, 1.5, .5} {
		clock.pass(pass)
		expect.Equal(t, returnWaiting(t, s), i%2, "after", pass)
	}
	expect.Equal(t, claimAll(t, s, 3), ids[2:], "only the task that returned last may try")
	mustBeSound(t, s)
}

// A task that returned to try a held source may still start after claims have only looked at it: because it did not fit,
// or was not to be prefetched.
func TestATrialThatDidNotStart(t *testing.T) {
	t.Parallel()
	clock, s := withHandClock(t)
	big := asking(t, "cpus=8")
	late := define("late")
	late.Timeout = 100
	for _, c := range []struct {
		open task.Properties
		look func(s *redisstate.Store) int
	}{
		{big, func(s *redisstate.Store) int { return len(keptWorker(t, s, "a", "cpus=2").Claims) }},
		{late, func(s *redisstate.Store) int { return len(prefetch(t, s, 0, 9)) }},
	} {
		id := mustOpen(t, s, c.open)[0]
		for _, worker := range []string{"v", "w"} {
			expect.NoError(t, s.Limits.FailedToStart(t.Context(), worker, c.open.SourceName(), false, "p", "why"))
		}
		expect.Len(t, keptWorker(t, s, "a", "cpus=8").Claims, 0)
		clock.pass(61)
		expect.Equal(t, returnWaiting(t, s), 1)
		expect.Equal(t, c.look(s), 0)
		expect.Equal(t, claimedIDs(keptWorker(t, s, "b", "cpus=8")), []int64{id})
		mustMove(t, s, id, rules.Cancel)
	}
}
