package look

import (
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// On a narrow terminal, the line leaves out the least important pieces, but keeps the estimate.
func TestTerminalLine(t *testing.T) {
	s := &admin.Status{
		Counts: task.Counts{task.Open: 329, task.Running: 6, task.Succeeded: 57, task.Failed: 8},
		Rate:   2.96, RateSoFar: 2.9, Workers: 1, Slots: 6, Busy: 6, Later: 90,
		Estimate: admin.Estimate{Low: 98 * time.Second, High: 180 * time.Second},
	}
	for width, want := range map[int]string{
		14:  "65/400 finish…",
		24:  "65/400 finished; 2.96/s",
		43:  "65/400 finished; 98s to 3m left; 2.96/s",
		83:  "65/400 finished; 98s to 3m left; 8 failed; 2.96/s; 2.9/s so far; 1 worker, 6/6 busy",
		103: "65/400 finished; 98s to 3m left; 329 open, 6 running, 57 succeeded; 8 failed; 2.96/s; 90 start later",
		123: "65/400 finished; 98s to 3m left; 329 open, 6 running, 57 succeeded; 8 failed; 2.96/s; 1 worker, 6/6 busy; 90 start later",
		163: "16% |███                 | 65/400 finished; 98s to 3m left; 329 open, 6 running, 57 succeeded; 8 failed; 2.96/s; 2.9/s so far; 1 worker, 6/6 busy; 90 start later",
	} {
		expect.Equal(t, terminalLine(s, width), want, width)
	}
	for width := range 200 {
		got := terminalLine(s, width+1)
		expect.True(t, utf8.RuneCountInString(got) <= width+1, width+1, got)
		if width > 34 {
			expect.Contains(t, got, "; 98s to 3m left")
		}
	}
	s.Estimate.Unknown = "nothing has ended for longer than any run took"
	expect.Equal(t, terminalLine(s, 43), "65/400 finished; time left unknown: nothin…")
}

// If a program is held, tdf watch prints one warning with a remedy, however many workers there are. The progress line shows
// the hold.
func TestPauseIsReportedOnce(t *testing.T) {
	s := &admin.Status{
		At: time.Unix(1_700_000_000, 0), Server: time.Unix(1_700_000_000, 0), Workers: 3, Slots: 3, Counts: task.Counts{task.Open: 5, task.Failed: 60},
		Pauses:   []admin.Pause{{Program: "bad", Until: time.Unix(1_700_000_045, 0), Why: "exit 4"}},
		Estimate: admin.Estimate{Unknown: "bad cannot be started"},
	}
	var said []string
	w := watchWarnings{campaign: "sweep 7", say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	w.check(s)
	s.Pauses[0].Until = s.Pauses[0].Until.Add(time.Second) // the next trial is later
	w.check(s)
	expect.MustLen(t, said, 1, "said")
	for _, want := range []string{"program bad", "exit 4", "repair the hosts or the source", "tdf cancel --campaign 'sweep 7' --state open"} {
		expect.Contains(t, said[0], want, "said … in it")
	}
	expect.Equal(t, terminalLine(s, 103), "60/65 finished; time left unknown: bad cannot be started; bad held, next trial in 46s; 60 failed")
}
