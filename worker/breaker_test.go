package worker

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// The worker keeps the rules of docs/operations.md, "Programs that a worker pauses".
func TestPauseOfProgramsThatCannotStart(t *testing.T) {
	at := time.Unix(1000, 0)
	a := newBreakers(3, 0, slog.New(slog.DiscardHandler))
	a.clock = func() time.Time { return at }
	is := func(probing bool, avoid ...string) {
		t.Helper()
		if got, probe := a.avoided(); !slices.Equal(got, avoid) || probe != probing {
			t.Errorf("avoids %v, probing %v; want %v, %v", got, probe, avoid, probing)
		}
	}
	fail := func(n int) {
		for range n {
			a.claimed("p")
			a.couldNotStart("p", "no fetch")
		}
	}
	fail(2)
	is(false)
	a.succeeded("p") // after a success, the count of rounds in a row begins again
	fail(2)
	a.failed("p", "exit 1") // the round ran
	for range 100 {
		a.failed("p", "exit 1")
	}
	fail(2)
	is(false)
	fail(1)
	is(false, "p")
	why := "3 rounds in a row could not be started, the last one: no fetch"
	expect.Equal(t, a.pauses(), []presence.Pause{{Program: "p", For: 60, Why: why}})
	expect.Equal(t, a.nextProbe(time.Hour), probePause, "next in")

	at = at.Add(probePause)
	is(true) // the worker tries one round
	a.claimed("q")
	is(true)
	a.claimed("p")
	is(false, "p")    // the worker tries no other round until that round ends
	a.roundEnded("p") // the task was lost, so this round does not count for or against the program
	is(true)
	fail(1)
	is(false, "p")
	at = at.Add(probePause)
	a.claimed("p")
	a.succeeded("p")
	is(false)
	got := a.pauses()
	expect.True(t, got == nil, got)
}

// If a host cannot run a program, the worker tries the program again soon, and then less and less often.
func TestPauseGrowsOnAnUnfitHost(t *testing.T) {
	at := time.Unix(1000, 0)
	a := newBreakers(0, 0, slog.New(slog.DiscardHandler))
	a.clock = func() time.Time { return at }
	for _, want := range []tdf.Seconds{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		a.unfit("p", "no interpreter")
		expect.Equal(t, a.nextProbe(time.Hour), want.Std(), "next in", want, "s")
		at = at.Add(want.Std())
		if avoid, probing := a.avoided(); len(avoid) > 0 || !probing {
			t.Errorf("after that: avoids %v, probing %v", avoid, probing)
		}
	}
	a.failed("p", "it ran, at least")
	if avoid, probing := a.avoided(); len(avoid) > 0 || probing {
		t.Errorf("after a run: avoids %v, probing %v", avoid, probing)
	}
}

// If a paused program has no tasks, the worker makes no extra calls for it.
func TestPausedProgramWithoutTasks(t *testing.T) {
	at := time.Unix(1000, 0)
	a := newBreakers(1, 0, slog.New(slog.DiscardHandler))
	a.clock = func() time.Time { return at }
	a.couldNotStart("p", strings.Repeat("x y ", 1e6))
	text := a.pauses()[0].Why
	expect.True(t, len(text) <= broker.MaxShort+100, "the reason has", len(text), "bytes")
	at = at.Add(2 * probePause)
	if _, probing := a.avoided(); !probing || a.nextProbe(time.Hour) != time.Hour {
		t.Errorf("probing %v, next in %v", probing, a.nextProbe(time.Hour))
	}
	a.nothingToProbe()
	if avoid, probing := a.avoided(); len(avoid) != 1 || probing || a.nextProbe(time.Hour) != probePause {
		t.Errorf("avoids %v, probing %v, next in %v", avoid, probing, a.nextProbe(time.Hour))
	}
	at = at.Add(forgetPause)
	a.nothingToProbe()
	expect.Len(t, a.pauses(), 0, "after a long time without tasks")
	for i := range 2 * maxBreakers {
		a.failed(strconv.Itoa(i), "exit 1")
	}
	expect.Len(t, a.programs, maxBreakers, "programs are remembered")
}

// While rounds of a program fail one after another, the worker reports that its slots pause. Other workers still claim.
func TestSlotsThatPauseAfterFailures(t *testing.T) {
	at := time.Unix(1000, 0)
	a := newBreakers(20, time.Minute, slog.New(slog.DiscardHandler))
	a.clock = func() time.Time { return at }
	for range slowedAfter - 1 {
		a.failed("p", "exit 1")
	}
	expect.Equal(t, a.pauses(), nil)
	expect.Len(t, a.changed, 0)
	a.failed("p", "exit 1: no such file")
	want := []presence.Pause{{Program: "p", For: 60, Why: "5 rounds failed in a row; the last failure: exit 1: no such file", Slots: true}}
	expect.Equal(t, a.pauses(), want)
	expect.Len(t, a.changed, 1)
	if avoid, probing := a.avoided(); len(avoid) > 0 || probing {
		t.Errorf("the worker avoids %v", avoid)
	}
	a.unfit("q", "no disk")
	if got := a.pauses(); len(got) != 2 || got[0].Program != "q" || got[0].Slots {
		t.Errorf("got %v, want the paused program first", got)
	}
	at = at.Add(2 * probePause)
	expect.Len(t, a.pauses(), 1, "long after the last failure")
	a.failed("p", "exit 1")
	a.succeeded("p")
	expect.Len(t, a.pauses(), 1, "after a success")
	for range slowedAfter {
		a.failed("sum-1a2b3c4d", "exit 1")
		a.failed("sum-2-1a2b3c4d", "exit 1")
	}
	expect.Len(t, a.pauses(), 3)
	<-a.changed
	a.succeeded("sum-1a2b3c4e")
	expect.Len(t, a.pauses(), 2, "after a success of the corrected program")
	expect.Len(t, a.changed, 1)
	a.failed("sum-1a2b3c4d", "exit 2")
	expect.Len(t, a.pauses(), 3, "after another failure of the old program")
}
