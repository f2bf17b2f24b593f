package redisstate

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// fillFailing writes entries of failing sources, and holds them or not.
func fillFailing(t *testing.T, s *Store, n int, held bool) {
	t.Helper()
	now := clockOf(t, s).String()
	for i := range n {
		name := fmt.Sprint(i)
		fields := []string{name, now + " " + now + " 1\np\nwhy\nw", name + ":trial", "1 0"}
		expect.NoError(t, s.Redis.HSet(t.Context(), s.Keys.Failing(), fields).Err())
		if held {
			expect.NoError(t, s.Redis.HSet(t.Context(), s.Keys.Paused(), tdf.SourceReason(name), now+" server").Err())
		}
	}
}

// Redis remembers a bounded number of failing sources, and forgets none that is held.
func TestFailingSourcesAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		for _, held := range []bool{false, true} {
			fillFailing(t, s, 500, held)
			for _, name := range []string{"new", "newer"} {
				expect.NoError(t, s.FailedToStart(t.Context(), "w", name, false, "p", "why"))
			}
			all := expect.Result(s.Redis.HGetAll(t.Context(), s.Keys.Failing()).Result()).Value(t)
			expect.Compare(t, len(all), "<=", 1000, held)
			expect.Equal(t, all["newer"] != "", !held)
			if held {
				expect.Len(t, expect.Result(s.HeldSources(t.Context())).Value(t), 500)
				expect.Len(t, all, 1000)
			}
			expect.NoError(t, s.Redis.Del(t.Context(), s.Keys.Failing()).Err())
		}
	})
}

// Of two servers that have read the same held source, one lets a task try it.
func TestOneTrialOfAHeldSource(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		ids := mustOpen(t, s, define("1"), define("2"), define("3"))
		source := task(t, s, ids[0]).SourceName()
		for _, worker := range []string{"v", "w"} {
			expect.NoError(t, s.FailedToStart(t.Context(), worker, source, false, "p", "why"))
		}
		expect.Len(t, claimAll(t, s, 3), 0)
		due, now, err := s.HeldDue(t.Context())
		expect.NoError(t, err)
		expect.MustLen(t, due, 1)
		for i, id := range ids[:2] {
			r := limits.Return{Due: due[0], Next: now.Add(60), Trial: task(t, s, id)}
			expect.Equal(t, expect.Result(s.ReturnTasks(t.Context(), []limits.Return{r})).Value(t), 1-i)
			expect.Equal(t, task(t, s, id).IsTrial(), i == 0)
		}
		held := expect.Result(s.HeldSources(t.Context(), source)).Value(t)
		expect.MustLen(t, held, 1)
		expect.Equal(t, held[0].Trial, ids[0])
		mustBeSound(t, s)
	})
}
