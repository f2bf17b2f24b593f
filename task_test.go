package tdf

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A high round number in a corrupt hash does not make parsing expensive. The cost depends only on the number of
// properties.
func TestParseTaskIsCheapInAHighRound(t *testing.T) {
	h := Hash{"state": "open", "round": "99999", "program": "p", "source": "rsync:/p/run.sh", "7:error": "x", "99999:open": "5"}
	allocations := testing.AllocsPerRun(3, func() {
		task, err := ParseTask(1, h)
		if err != nil || task.Round != 99999 || !task.Rounds.At(7).HasError || task.Current().Entered[Open] != 5 {
			t.Errorf("%v, %v", task.Round, err)
		}
	})
	if allocations > 500 {
		t.Errorf("ParseTask made %v allocations", allocations)
	}
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
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if r := got.Rounds.At(17); r.TimedOutAt != 12.5 || !got.Current().Committed || len(got.Rounds) != 5 {
		t.Errorf("got %+v", got)
	}
}

// The methods of a summary panic if a caller asks for a text that was not read.
func TestSummariesPanicForUnreadTexts(t *testing.T) {
	h := Hash{"state": "succeeded", "round": "1", "program": "p", "source": "rsync:/p/run.sh", "0:error": "x", "1:executed": "5", "1:claim": "c"}
	whole, _ := ParseTask(1, h)
	if whole.IsSummary() || whole.LastOutput() != "" {
		t.Errorf("the whole task: %+v", whole)
	}
	summary, err := ParseSummary(1, h)
	if err != nil || !summary.IsSummary() || summary.Current().Unread.String() != "output, error, result, tail" {
		t.Errorf("the summary: %+v, %v", summary, err)
	}
	for text, read := range map[Texts]func() string{TextOutput: summary.LastOutput, TextError: summary.LastError} {
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, ErrNotRead) {
					t.Errorf("the %v of a summary: %v", text, err)
				}
			}()
			read()
		}()
		summary.Current().Unread &^= text
		if got := read(); got != "" {
			t.Errorf("the %v was read and is empty, but the method returned %q", text, got)
		}
	}
}
