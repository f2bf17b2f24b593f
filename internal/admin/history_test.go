package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

const (
	succeeds = counts.CountTransition + "succeed:succeeded"
	fails    = counts.CountTransition + "fail:failed"
	expires  = counts.CountTransition + "cancel:expired"
)

// countedAt returns an entry of a history.
func countedAt(at task.Time, numbers map[string]int64) counts.HistoryEntry {
	return counts.HistoryEntry{At: at, Counts: numbers}
}

// A period has the differences of its entries. A time without a server is a gap, but its tasks count. After counts became
// smaller, the others still count.
func TestPeriod(t *testing.T) {
	t.Parallel()
	entries := []counts.HistoryEntry{
		countedAt(6001, map[string]int64{succeeds: 10, fails: 1}),
		countedAt(6061, map[string]int64{succeeds: 70, fails: 4, expires: 1}),
		countedAt(6190, map[string]int64{succeeds: 75, fails: 4, expires: 1}),
		countedAt(6241, map[string]int64{succeeds: 5, fails: 7, expires: 1}),
	}
	p := periodOf(counts.HistoryHour, entries, countedAt(6271, map[string]int64{succeeds: 20, fails: 7, expires: 1}))
	expect.Equal(t, p.Succeeded, 80)
	expect.Equal(t, p.Failed, 7)
	expect.Equal(t, p.Total(), 87)
	expect.True(t, p.Since.Equal(time.Unix(6001, 0)), p)
	text := ""
	for _, s := range p.Steps {
		good, bad := s.PerMinute()
		text += fmt.Sprintf("%d-%d %d %d %.2f %.2f %v\n", s.From.Unix(), s.To.Unix(), s.Succeeded, s.Failed, good, bad, s.Gap)
	}
	expect.Equal(t, text, "6001-6061 60 4 60.00 4.00 false\n6061-6190 5 0 2.33 0.00 true\n6190-6241 0 3 0.00 3.53 false\n6241-6271 15 0 30.00 0.00 false\n", "steps")

	empty := periodOf(counts.HistoryHour, nil, countedAt(6271, map[string]int64{succeeds: 20}))
	expect.Equal(t, empty.Total(), 0)
	expect.True(t, empty.Since.IsZero(), empty)
	expect.Len(t, empty.Steps, 0)
	same := periodOf(counts.HistoryHour, []counts.HistoryEntry{countedAt(6000, nil)}, countedAt(6000, map[string]int64{succeeds: 20}))
	good, _ := same.Steps[0].PerMinute()
	expect.True(t, good == 20/1e-3, "in no time", good)
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	run := func(bound string) string { return counts.CountRun + bound }
	for _, c := range []struct {
		counts        map[string]int64
		n             int64
		p50, p90, p99 time.Duration
	}{
		{nil, 0, 0, 0, 0},
		{map[string]int64{run("5"): 100}, 100, 3 * time.Second, 4600 * time.Millisecond, 4960 * time.Millisecond},
		{map[string]int64{run("1"): 50, run("15"): 40, run("60"): 10}, 100, time.Second, 15 * time.Second, 55500 * time.Millisecond},
		{map[string]int64{run("inf"): 3}, 3, 48 * time.Hour, 48 * time.Hour, 48 * time.Hour},
		{map[string]int64{run("0.010000"): 1}, 1, 5 * time.Millisecond, 9 * time.Millisecond, 9900 * time.Microsecond},
	} {
		got := percentilesOf(&counts.Activity{Counts: c.counts}, counts.CountRun)
		expect.Equal(t, got, Percentiles{c.n, c.p50, c.p90, c.p99}, fmt.Sprint(c.counts))
	}
}
