package redisstate

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// QueueCounts counts tasks of all priorities, tags and handlers of a queue, also if they are not due.
func TestQueueCounts(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		mustBe := func(when, want string) {
			t.Helper()
			queues, err := s.QueueCounts(t.Context())
			waiting, err2 := s.CountWaiting(t.Context())
			got := fmt.Sprint(countsText(queues), " ", waiting)
			expect.NoError(t, errors.Join(err, err2), when)
			expect.Equal(t, got, want, when)
		}
		mustBe("without tasks", "[] 0")
		plain := mustOpen(t, s, define("plain"), define("plain"))
		mustBe("plain tasks", "[{default 2 false}] 0")
		later, handler, limited, waiting := placed("a", 0), placed("b", 0), define("limited"), placed("b", 0)
		later.StartAfter, handler.Source, limited.LimitKey, waiting.After = 4e9, "", "db", &tdf.Dependencies{Tasks: plain[:1]}
		mustOpen(t, s, placed("a", 3), placed("a", -3, "gpu"), later, handler, limited, waiting, placed("", 7))
		mustBe("queues", "[{a 3 false} {b 1 false} {default 4 false}] 1")
		claimFor(t, s, 5, offerOf("b"))
		mustBe("after a claim that finds nothing", "[{a 3 false} {b 1 false} {default 4 false}] 1")
		s.Redis.Del(t.Context(), s.Keys.Levels("queue=a"), s.Keys.Later("queue=a"))
		s.Redis.Set(t.Context(), s.Keys.Levels("queue=a"), "text", 0)
		s.Redis.ZAdd(t.Context(), s.Keys.Levels("handler=x;y"), redis.Z{Score: 1, Member: "no number"})
		s.Redis.HSet(t.Context(), s.Keys.Partitions(), "handler=x;y", 1)
		mustBe("odd sets", "[{a 1 false} {b 1 false} {default 4 false}] 1")
	})
}

// countsText returns counts without the times of their first tasks.
func countsText(queues []counts.QueueCount) string {
	var all []string
	for _, c := range queues {
		all = append(all, fmt.Sprintf("{%s %d %v}", c.Queue, c.Open, c.AtLeast))
	}
	return fmt.Sprint(all)
}

// The first task of a queue is the one that could be claimed first, whatever its priority.
func TestQueueCountsHaveTheFirstTask(t *testing.T) {
	s := newStore(t)
	first, second := placed("a", -5), placed("a", 5, "gpu")
	first.StartAfter, second.StartAfter = 4e9, 5e9
	mustOpen(t, s, second, first)
	queues := expect.Result(s.QueueCounts(t.Context())).Value(t)
	expect.MustLen(t, queues, 1)
	expect.MustTrue(t, queues[0].First >= 4e9, queues)
	expect.Compare(t, queues[0].First, "<", 5e9)
}

// Above a number of priorities, the counts say that they are incomplete.
func TestQueueCountsOfManyPriorities(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, placed("a", 1), placed("b", 1))
	var levels []redis.Z
	for i := range 20_000 {
		levels = append(levels, redis.Z{Score: float64(i), Member: fmt.Sprint(i)})
	}
	for page := range slices.Chunk(levels, 5000) {
		s.Redis.ZAdd(t.Context(), s.Keys.Levels("queue=a"), page...)
	}
	queues, err := s.QueueCounts(t.Context())
	want := "[{a 1 false} {b 1 false}]"
	expect.NoError(t, err)
	expect.Equal(t, countsText(queues), want)
	s.Redis.ZAdd(t.Context(), s.Keys.Levels("queue=a"), redis.Z{Score: 1e6, Member: "1000000"})
	queues, err = s.QueueCounts(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, countsText(queues), "[{a 1 true} {b 1 false}]")
}

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
	mustHave("with a plain task", class.Plain, "queue=a", "queue=b")
	claimFor(t, s, 5, offerOf("a"))
	mustHave("after a claim", class.Plain, "queue=b")
}

// A hash that another program has written gives no error, and only a bounded number of names.
func TestPartitionsOfAStrangeHash(t *testing.T) {
	s := newStore(t)
	for from := 0; from < 3*index.PartitionsListed/2; from += index.PartitionsPerPage {
		var fields []any
		for i := range index.PartitionsPerPage {
			fields = append(fields, fmt.Sprint("queue=q", from+i), "1", fmt.Sprint("x", from+i), "1")
		}
		must(t, s.Redis.HSet(t.Context(), s.Keys.Partitions(), fields...).Err())
	}
	names := expect.Result(s.PartitionNames(t.Context())).Value(t)
	expect.Compare(t, len(names), "<=", index.PartitionsListed+1)
	expect.True(t, !slices.Contains(names, "x1"), len(names), "names")
	s.Redis.Del(t.Context(), s.Keys.Partitions())
	s.Redis.Set(t.Context(), s.Keys.Partitions(), "text", 0)
	expect.Len(t, expect.Result(s.Partitions(t.Context())).Value(t), 0, "a wrong type")
}
