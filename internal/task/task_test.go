package task

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A high round number in a corrupt hash does not make parsing expensive. The cost depends only on the number of
// properties.
func TestParseTaskIsCheapInAHighRound(t *testing.T) {
	h := Hash{"state": "open", "round": "99999", "program": "p", "source": "rsync:/p/run.sh", "7:error": "x", "99999:open": "5"}
	allocations := testing.AllocsPerRun(3, func() {
		one := expect.Result(ParseTask(1, h)).Value(t)
		expect.Equal(t, one.Round, 99999)
		expect.True(t, one.Rounds.At(7).HasError, one.Round)
		expect.Equal(t, one.Current().Entered[Open], 5)
	})
	expect.True(t, allocations <= 500, "ParseTask made", allocations, "allocations")
	if bytes := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = ParseTask(1, h)
		}
	}).AllocedBytesPerOp(); bytes > 100_000 {
		t.Errorf("ParseTask allocates %d bytes", bytes)
	}
}

// Properties with unknown names do not change the rounds that ParseTask returns.
func TestParseTaskIgnoresUnknownProperties(t *testing.T) {
	few := Hash{
		"state": "executed", "round": "40", "program": "p", "source": "rsync:/p/run.sh",
		"0:worker": "w", "3:error": "no", "17:timeout": "12.5", "39:lost": "13", "39:worker": "v",
		"40:executed": "20", "40:output": "", "40:error": "", "40:exit": "0", "41:worker": "never", "039:exit": "9", "-1:exit": "9",
	}
	more := Hash{}
	for name, value := range few {
		more[name] = value
	}
	for i := range 40 {
		more[fmt.Sprint("unknown-", i)] = "x"
	}
	want, _ := ParseTask(1, more)
	got, err := ParseTask(1, few)
	diff := cmp.Diff(want, got)
	expect.Equal(t, diff, "")
	expect.NoError(t, err, diff)
	expect.Equal(t, got.Rounds.At(17).TimedOutAt, 12.5)
	expect.True(t, got.Current().Committed, got)
	expect.Len(t, got.Rounds, 5)
}

// A summary says which texts were not read, and its methods return "" for them.
func TestSummariesOfUnreadTexts(t *testing.T) {
	h := Hash{"state": "succeeded", "round": "1", "program": "p", "source": "rsync:/p/run.sh", "0:error": "x", "1:executed": "5", "1:claim": "c"}
	whole, _ := ParseTask(1, h)
	expect.Equal(t, whole.Unread, 0, "the whole task")
	expect.Equal(t, whole.LastOutput(), "")
	summary := expect.Result(ParseSummary(1, h)).Value(t)
	expect.Equal(t, summary.Current().Unread.String(), "output, error, result, tail")
	expect.Equal(t, summary.LastOutput()+summary.LastError()+summary.LastResult(), "")
}

// A task's last run is its current round if a worker has claimed that round, and otherwise the previous round.
func TestLastRun(t *testing.T) {
	for name, c := range map[string]struct {
		h    Hash
		want int
	}{
		"open in its first round":           {Hash{"state": "open", "round": "0"}, 0},
		"open again":                        {Hash{"state": "open", "round": "2", "0:output": "x", "1:worker": "w", "1:lost": "5"}, 1},
		"running":                           {Hash{"state": "running", "round": "1", "0:output": "x", "1:worker": "w"}, 1},
		"executed":                          {Hash{"state": "executed", "round": "1", "1:worker": "w", "1:executed": "5"}, 1},
		"succeeded without a worker's name": {Hash{"state": "succeeded", "round": "1", "1:executed": "5"}, 1},
		"timed out without a text":          {Hash{"state": "timed_out", "round": "1", "0:output": "x", "1:worker": "w"}, 1},
		"lost too often":                    {Hash{"state": "failed", "round": "1", "0:output": "x", "1:worker": "w", "1:lost": "5"}, 1},
		"rejected":                          {Hash{"state": "failed", "round": "1", "0:output": "x", "1:error": "invalid"}, 1},
		"rejected, archived":                {Hash{"state": "archived", "outcome": "failed", "round": "1", "1:error": "invalid"}, 1},
		"expired while it waited":           {Hash{"state": "expired", "round": "1", "0:output": "x"}, 0},
		"expired while it ran":              {Hash{"state": "expired", "round": "1", "0:output": "x", "1:worker": "w"}, 1},
		"cancelled while it waited":         {Hash{"state": "archived", "outcome": "cancelled", "round": "1", "0:output": "x"}, 0},
	} {
		one, _ := ParseTask(1, c.h)
		expect.Equal(t, one.LastRun(), c.want, name, "round")
	}
}
