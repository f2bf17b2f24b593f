package counts

import (
	"fmt"
	"math"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

var succeeds = TransitionName(rules.VerbSucceed, task.Succeeded)

// succeed counts tasks of a queue that have succeeded.
func succeed(s *Counters, queue string, n int64) {
	s.Count(queue, succeeds, n)
	s.SendCounts()
}

// historyText returns the times of the entries, and how many tasks had succeeded.
func historyText(t *testing.T, s *Counters, h HistorySpan, now task.Time) (text string) {
	t.Helper()
	for _, e := range expect.Result(s.History(t.Context(), h, now)).Value(t) {
		text += fmt.Sprintf("%v:%d ", e.At, e.Counts[succeeds])
	}
	return text
}

// The first server in a step stores the entry, for all queues together. The entries of a span are bounded, and expire.
func TestHistory(t *testing.T) {
	conntest.OnEach(t, func(t *testing.T, c *conn.Conn) {
		s := New(c)
		s.KeepCounts()
		ctx, other := t.Context(), New(conntest.Another(t, s.Conn))
		start := task.Time(1_800_000_000)
		succeed(s, "a", 3)
		succeed(s, "b", 4)
		s.Count("a", CountLife+"1", 5) // not in the history
		expect.NoError(t, s.KeepHistory(ctx, start+1))
		succeed(s, "a", 10)
		expect.NoError(t, other.KeepHistory(ctx, start+2))
		expect.NoError(t, other.KeepHistory(ctx, start+60))
		expect.NoError(t, s.KeepHistory(ctx, start+61))
		expect.Equal(t, historyText(t, s, HistoryHour, start+62), "1800000001:7 1800000060:17 ", "the hour")
		expect.Equal(t, historyText(t, other, HistoryDay, start+62), "1800000001:7 ", "the day")
		present := expect.Result(other.PresentHistory(ctx, start+70)).Value(t)
		expect.Equal(t, fmt.Sprint(present), fmt.Sprint(HistoryEntry{start + 70, map[string]int64{succeeds: 17}}), "the present")

		expect.NoError(t, s.KeepHistory(ctx, start+5)) // the clock was set back
		expect.Equal(t, historyText(t, s, HistoryHour, start+5), "1800000001:7 ", "before a later entry")
		for i := range 100 {
			expect.NoError(t, s.KeepHistory(ctx, start+task.Time(60*i)))
		}
		hour := expect.Result(s.History(ctx, HistoryHour, start+60*99)).Value(t)
		expect.MustLen(t, hour, 61)
		expect.MustEqual(t, hour[0].At, start+60*39)
		expect.Equal(t, hour[60].At, start+60*99)
		for key, seconds := range map[string]float64{s.historyKey(HistoryHour, 30_000_000): 62 * 60, s.historyKey(HistoryDay, 2_000_000): 98 * 900} {
			ttl := s.Conn.Redis.TTL(ctx, key).Val().Seconds()
			expect.Compare(t, 0, "<", ttl, key)
			expect.Compare(t, ttl, "<=", seconds, key)
		}
	})
}

// A server whose replies are lost stores the entry once, with the first counts.
func TestHistoryAfterLostReplies(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := New(conntest.Connect(t, proxy.Addr))
	s.KeepCounts()
	succeed(s, "q", 1)
	proxy.DropReplies(2, redistest.Scripts)
	expect.NoError(t, s.KeepHistory(t.Context(), 6001))
	expect.Equal(t, proxy.Dropped(), 2, "lost replies")
	succeed(s, "q", 1)
	expect.NoError(t, s.KeepHistory(t.Context(), 6002))
	expect.Equal(t, historyText(t, s, HistoryHour, 6003), "6001:1 ", "the hour")
}

// Values of other programs are no entries, and cause no error.
func TestHistoryOfOtherPrograms(t *testing.T) {
	s := New(conntest.New(t))
	ctx := t.Context()
	s.KeepCounts()
	succeed(s, "q", 8)
	for step, text := range map[int64]string{
		100: "", 101: "null", 102: `{"at":6000,"counts":{}}`, 103: `{"at":"x"}`, 104: `{"at":6241,"counts":{"` + succeeds + `":1e400}}`, 105: "\xff{", 107: `{"at":6421,"counts":null}`,
	} {
		expect.NoError(t, s.Conn.Redis.Set(ctx, s.historyKey(HistoryHour, step), text, 0).Err())
	}
	expect.NoError(t, s.Conn.Redis.LPush(ctx, s.historyKey(HistoryHour, 106), "x").Err())
	expect.NoError(t, s.KeepHistory(ctx, 6000+6*60))
	expect.Equal(t, historyText(t, s, HistoryHour, 6430), "6421:0 ", "the hour")
	expect.Equal(t, historyText(t, s, HistoryDay, 6430), "6360:8 ", "the day")
	expect.NoError(t, s.Conn.Redis.HSet(ctx, s.Conn.Keys.ActivityOf("q"), succeeds, int64(math.MaxInt64), "made:x:y", "1", CountRun+"7", "3").Err())
	expect.NoError(t, s.Conn.Redis.ZAdd(ctx, s.Conn.Keys.Activity(), redis.Z{Score: 1, Member: "r"}).Err())
	expect.NoError(t, s.Conn.Redis.HSet(ctx, s.Conn.Keys.ActivityOf("r"), succeeds, "9").Err())
	present := expect.Result(s.PresentHistory(ctx, 6430)).Value(t)
	expect.True(t, len(present.Counts) == 0, "after an overflow", present.Counts)
	expect.NoError(t, s.Conn.Redis.Set(ctx, s.Conn.Keys.Activity(), "x", 0).Err())
	expect.Result(s.PresentHistory(ctx, 6430)).Fails(t, "WRONGTYPE")
}

// A count that became smaller, or is negative, adds nothing.
func TestSince(t *testing.T) {
	t.Parallel()
	earlier := HistoryEntry{Counts: map[string]int64{succeeds: 5, CountRun + "1": 9, CountWait + "1": math.MinInt64}}
	later := HistoryEntry{Counts: map[string]int64{succeeds: 7, CountRun + "1": 3, CountWait + "1": 4, "unknown": 4}}
	expect.Equal(t, fmt.Sprint(later.Since(earlier).Counts), fmt.Sprint(map[string]int64{succeeds: 2, CountWait + "1": 4}), "since")
	expect.True(t, len(HistoryEntry{}.Since(later).Counts) == 0, "since a later entry")
}
