package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/manager"
)

// On any terminal the estimate is whole, and what is left out is what is needed least.
func TestTerminalLine(t *testing.T) {
	s := &admin.Status{
		Counts: manager.Counts{tdf.Open: 329, tdf.Running: 6, tdf.Succeeded: 57, tdf.Failed: 8},
		Rate:   2.96, RateSoFar: 2.9, Workers: 1, Slots: 6, Busy: 6, Later: 90,
		Estimate: admin.Estimate{Low: 98 * time.Second, High: 180 * time.Second},
	}
	for width, want := range map[int]string{
		10:  "65/400 do…",
		20:  "65/400 done; 2.96/s",
		39:  "65/400 done; 98s to 3m left; 2.96/s",
		79:  "65/400 done; 98s to 3m left; 8 failed; 2.96/s; 2.9/s so far; 1 worker, 6/6 busy",
		99:  "65/400 done; 98s to 3m left; 329 open, 6 running, 57 succeeded; 8 failed; 2.96/s; 90 start later",
		119: "65/400 done; 98s to 3m left; 329 open, 6 running, 57 succeeded; 8 failed; 2.96/s; 1 worker, 6/6 busy; 90 start later",
		159: "16% |███                 | 65/400 done; 98s to 3m left; 329 open, 6 running, 57 succeeded; 8 failed; 2.96/s; 2.9/s so far; 1 worker, 6/6 busy; 90 start later",
	} {
		if got := terminalLine(s, width); got != want {
			t.Errorf("%d:\n%s, want\n%s", width, got, want)
		}
	}
	for width := range 200 {
		got := terminalLine(s, width+1)
		if utf8.RuneCountInString(got) > width+1 {
			t.Errorf("%d: %s", width+1, got)
		}
		if width > 30 && !strings.Contains(got, "; 98s to 3m left") {
			t.Errorf("%d: there is no estimate: %s", width+1, got)
		}
	}
	s.Estimate.Unknown = "nothing has ended for longer than any run took"
	if got, want := terminalLine(s, 39), "65/400 done; time left unknown: nothin…"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A pause is reported once, with its remedy, and the line shows it.
func TestAPauseIsTold(t *testing.T) {
	s := &admin.Status{
		At: time.Unix(1_700_000_000, 0), Server: time.Unix(1_700_000_000, 0), Workers: 3, Slots: 3, Counts: manager.Counts{tdf.Open: 5, tdf.Failed: 60},
		Pauses:   []admin.Pause{{Program: "bad", Workers: 3, Of: 3, Until: time.Unix(1_700_000_045, 0), Why: "exit 4"}},
		Estimate: admin.Estimate{Unknown: "all workers pause bad"},
	}
	var told []string
	w := warnings{campaign: "sweep 7", say: func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }}
	w.about(s)
	s.Pauses[0].Until = s.Pauses[0].Until.Add(time.Second) // as of the next heartbeat
	w.about(s)
	const want = "program bad is paused on 3 of 3 workers until 22:14:05 UTC, in 45 s: exit 4; " +
		"tdf failures --campaign 'sweep 7' says what fails, and tdf watch 'sweep 7' --stop-after N gives the campaign up when N tasks have failed"
	if len(told) != 1 || told[0] != want {
		t.Errorf("told %q, want %q", told, want)
	}
	if got, want := terminalLine(s, 99), "60/65 done; time left unknown: all workers pause bad; bad paused on 3/3 workers for 46s; 60 failed"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
