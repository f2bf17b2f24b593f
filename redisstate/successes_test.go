package redisstate

import (
	"strconv"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// SucceededElsewhere reports successes of other workers for an hour. Redis keeps at most two successes per program,
// even if there are many workers.
func TestSuccesses(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		elsewhere := func(worker, program string, want bool) {
			t.Helper()
			expect.Result(s.SucceededElsewhere(t.Context(), worker, program)).Is(t, want, worker, program)
		}
		elsewhere("w1", "p", false)
		must(t, s.NoteSuccesses(t.Context(), "w1", "p", "q"))
		elsewhere("w1", "p", false)
		elsewhere("w2", "p", true)
		elsewhere("w2", "r", false)
		for i := range 20 {
			must(t, s.NoteSuccesses(t.Context(), "w"+strconv.Itoa(i), "p"))
		}
		elsewhere("w1", "p", true)
		key := s.Keys.Successes("p")
		expect.Equal(t, s.Redis.ZCard(t.Context(), key).Val(), keptSuccesses, "Redis keeps the successes of … workers")
		left := s.Redis.TTL(t.Context(), key).Val()
		expect.True(t, left > 0 && left <= successLife, "the key expires after", left)
		for _, z := range s.Redis.ZRangeWithScores(t.Context(), key, 0, -1).Val() {
			z.Score -= successLife.Seconds() + 60
			s.Redis.ZAdd(t.Context(), key, z)
		}
		elsewhere("w1", "p", false)
		must(t, s.NoteSuccesses(t.Context(), "w"))
	})
}
