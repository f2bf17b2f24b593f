package redisstate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Partitions returns the partitions that have open tasks, also if no task is due.
func TestPartitionsWithTasks(t *testing.T) {
	s := newStore(t)
	mustHave := func(when string, want ...string) {
		t.Helper()
		expect.Result(s.Partitions(t.Context())).Is(t, want, when)
	}
	mustHave("without tasks")
	later := placed("b", 0)
	later.StartAfter = 4e9
	mustOpen(t, s, placed("a", 3), later)
	mustHave("two queues", "queue=a", "queue=b")
	mustOpen(t, s, define("plain"))
	mustHave("with a plain task", tdf.DefaultPartition, "queue=a", "queue=b")
	claimFor(t, s, 5, offerOf("a"))
	mustHave("after a claim", tdf.DefaultPartition, "queue=b")
}

// A hash that another program has written gives no error, and only a bounded number of names.
func TestPartitionsOfAStrangeHash(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		for from := 0; from < 3*partitionsListed/2; from += partitionsPerPage {
			var fields []any
			for i := range partitionsPerPage {
				fields = append(fields, fmt.Sprint("queue=q", from+i), "1", fmt.Sprint("x", from+i), "1")
			}
			must(t, s.Redis.HSet(t.Context(), s.Keys.Partitions(), fields...).Err())
		}
		names, err := s.partitionNames(t.Context())
		expect.True(t, err == nil && len(names) <= partitionsListed+1 && !slices.Contains(names, "x1"), len(names), "names", err)
		s.Redis.Del(t.Context(), s.Keys.Partitions())
		s.Redis.Set(t.Context(), s.Keys.Partitions(), "text", 0)
		expect.Len(t, expect.Result(s.Partitions(t.Context())).Value(t), 0, "a wrong type")
	})
}
