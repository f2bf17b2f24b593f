package redisstate

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
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
