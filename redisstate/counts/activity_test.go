package counts

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

var opens = TransitionName(rules.VerbOpen, task.Open)

func countsOf(t *testing.T, s *Counters, most int) map[string]map[string]int64 {
	t.Helper()
	all := map[string]map[string]int64{}
	for _, a := range expect.Result(s.Activity(t.Context(), &ActivityCounter{}, most)).Value(t) {
		all[a.Queue] = a.Counts
	}
	return all
}

// A client whose replies are lost adds each count once.
func TestActivityAfterLostReplies(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := New(conntest.Connect(t, proxy.Addr))
	s.KeepCounts()
	for range 3 {
		s.Count("q", opens, 7)
		proxy.DropReplies(2, redistest.Scripts)
		s.SendCounts()
	}
	expect.Equal(t, countsOf(t, s, 10)["q"][opens], 21)
}

// Of many queues, a counter reads the counts of the busiest at each call, and those of each other queue at the latest at every
// third call. The counts of all other queues together never fall, also while this client adds its own.
func TestActivityAgain(t *testing.T) {
	s := New(conntest.New(t))
	s.KeepCounts()
	other := New(conntest.Another(t, s.Conn))
	other.KeepCounts()
	queue := func(i int) string { return fmt.Sprintf("q%04d", i) }
	for i := range mostCounted {
		s.Count(queue(i), opens, int64(1+i))
	}
	s.SendCounts()
	var c ActivityCounter
	read := func() map[string]int64 {
		t.Helper()
		all := map[string]int64{}
		for _, a := range expect.Result(s.Activity(t.Context(), &c, 10)).Value(t) {
			all[a.Queue] = a.Counts[opens]
		}
		expect.Len(t, all, 11)
		return all
	}
	total, before := int64(mostCounted*(mostCounted+1)/2), read()
	for range 4 {
		for _, by := range []*Counters{s, other} {
			for i := 1; i < mostCounted; i += 9 {
				by.Count(queue(i), opens, 1)
				total++
			}
			by.Count(queue(mostCounted-1), opens, 1)
			by.Count("new"+by.Conn.Boot(), opens, 1) // counts as other queues, because there are too many
			total += 2
			if by == other {
				by.SendCounts()
			}
		}
		for range 2 { // before this client has sent its counts, and after it
			got := read()
			expect.True(t, got[OtherQueues] >= before[OtherQueues], "the counts of other queues fell", before[OtherQueues], got[OtherQueues])
			expect.Equal(t, got[queue(mostCounted-1)], before[queue(mostCounted-1)]+2, "the busiest queue")
			s.SendCounts()
			before[OtherQueues] = got[OtherQueues]
		}
		before = read()
	}
	other.Count(queue(1), opens, 1)
	other.Count(queue(mostCounted-500), opens, 1)
	other.SendCounts()
	for range (mostCounted+othersAtOnce-1)/othersAtOnce - 1 {
		read()
	}
	sum := int64(-2)
	for _, n := range read() {
		sum += n
	}
	expect.Equal(t, sum, total, "each queue had its turn")
}

// A namespace with many queues has counts for some of them, and counts the others together.
func TestActivityOfManyQueues(t *testing.T) {
	conntest.OnEach(t, func(t *testing.T, c *conn.Conn) {
		s := New(c)
		s.KeepCounts()
		for i := range mostCounted + 10 {
			s.Count(fmt.Sprintf("q%04d", i), opens, 2)
		}
		s.Count("busy", opens, 5)
		s.SendCounts()
		all := expect.Result(s.Activity(t.Context(), &ActivityCounter{}, 5000)).Value(t)
		total := int64(0)
		for _, a := range all {
			total += a.Counts[opens]
		}
		expect.Len(t, all, mostCounted+1, total)
		expect.Equal(t, total, 2*(mostCounted+10)+5)
		expect.Equal(t, fmt.Sprint(countsOf(t, s, 1)), fmt.Sprintf("map[busy:map[%s:5] other:map[%[1]s:%d]]", opens, total-5))
		// A new queue takes the place of one whose counts have expired.
		expect.NoError(t, s.Conn.Redis.Del(context.Background(), s.Conn.Keys.ActivityOf("q0000")).Err())
		s.Count("new", opens, 1)
		s.SendCounts()
		expect.Equal(t, s.Conn.Redis.HGet(t.Context(), s.Conn.Keys.ActivityOf("new"), opens).Val(), "1")
	})
}

// Values of other programs in the counts neither stop nor mislead the readers.
func TestForeignActivity(t *testing.T) {
	s := New(conntest.New(t))
	s.KeepCounts()
	expect.NoError(t, s.Conn.Redis.HSet(t.Context(), s.Conn.Keys.ActivityOf("a"), opens, "x", "wait:1", "1").Err())
	expect.NoError(t, s.Conn.Redis.Set(t.Context(), s.Conn.Keys.ActivityOf("b"), "text", 0).Err())
	for _, queue := range []string{"a", "b"} {
		s.Count(queue, opens, 1)
		s.Count(queue, TransitionName(rules.VerbClaim, task.Running), 1)
	}
	s.SendCounts()
	counts := countsOf(t, s, 10)
	expect.Len(t, counts, 1)
	expect.Equal(t, counts["a"][TransitionName(rules.VerbClaim, task.Running)], 1)
	expect.Equal(t, counts["a"]["wait:1"], 1)
}
