package worker

import (
	"context"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

func ran(slot int, from, to tdf.Time, outcome string, task int64, group string) presence.Bar {
	return presence.Bar{Slot: slot, Start: from, End: to, Outcome: outcome, Task: task, Group: group}
}

// bars returns the bars for the next call to Redis, the present ones by slot and start.
func (t *timeline) bars() (ended, present []presence.Bar, ok bool) {
	ended, present, ok = t.take()
	slices.SortFunc(present, func(a, b presence.Bar) int { return 1000*(a.Slot-b.Slot) + int(a.Start-b.Start) })
	return ended, present, ok
}

// Short rounds that follow each other on a slot become one bar, with the worst outcome. Long rounds are bars of their own.
func TestRoundsBecomeBars(t *testing.T) {
	t.Parallel()
	line := timeline{longest: 10}
	line.end(ran(1, 100, 101, "succeeded", 1, "a"))
	line.end(ran(1, 102, 104, "failed", 2, "a"))
	line.end(ran(1, 105, 106, "succeeded", 3, "b"))
	line.end(ran(2, 105, 106, "succeeded", 4, "b"))
	merged := presence.Bar{Slot: 1, Start: 100, End: 106, Busy: 4, Rounds: 3, Outcome: "failed", Task: 2}
	other := presence.Bar{Slot: 2, Start: 105, End: 106, Busy: 1, Rounds: 1, Outcome: "succeeded", Task: 4, Group: "b"}
	ended, present, ok := line.bars()
	expect.True(t, ok, ended)
	expect.Len(t, ended, 0)
	expect.Equal(t, present, []presence.Bar{merged, other})
	_, _, ok = line.bars()
	expect.True(t, !ok, "nothing has changed")

	line.end(ran(1, 106, 200, "succeeded", 5, "a"))
	line.end(ran(1, 150, 151, "succeeded", 6, "a")) // the clock went back
	line.end(ran(1, 0, 0, "released", 7, ""))       // did not run
	ended, present, _ = line.bars()
	expect.MustLen(t, ended, 2)
	expect.MustEqual(t, ended[0], merged)
	expect.MustEqual(t, ended[1].Task, 5)
	expect.Equal(t, ended[1].Busy, 94)
	expect.MustLen(t, present, 2)
	expect.Equal(t, present[0].Task, 6)
	for i := range int64(3 * presence.MaxBars) {
		line.end(ran(1, tdf.Time(1000*(i+1)), tdf.Time(1000*(i+1)+500), "succeeded", i+1, ""))
	}
	ended, _, _ = line.bars()
	expect.MustLen(t, ended, presence.MaxBars)
	expect.Equal(t, ended[len(ended)-1].Task, 3*presence.MaxBars-1)
}

// A round that runs is a bar from the second call on, and disappears when it ends.
func TestRunningRoundIsABar(t *testing.T) {
	t.Parallel()
	var line timeline
	line.begin(ran(1, 100, 0, "", 1, "a"))
	_, present, ok := line.bars()
	expect.True(t, !ok, "a round that may be short", present)
	expect.Len(t, present, 0)
	_, present, ok = line.bars()
	running := presence.Bar{Slot: 1, Start: 100, End: 100, Rounds: 1, Outcome: presence.BarRunning, Task: 1, Group: "a"}
	expect.True(t, ok, present)
	expect.MustLen(t, present, 1)
	expect.Equal(t, present[0], running)
	_, _, ok = line.bars()
	expect.True(t, !ok, "nothing has changed")
	line.end(ran(1, 0, 0, "released", 1, ""))
	line.begin(ran(presence.MaxBarSlot+1, 100, 0, "", 2, ""))
	line.end(ran(presence.MaxBarSlot+1, 100, 101, "failed", 2, ""))
	_, present, ok = line.bars()
	expect.True(t, ok, present)
	expect.Len(t, present, 0)
}

// A round whose report Redis has refused is not shown as failed, because the task has another outcome.
func TestBarOfADroppedRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, end := w.supervisor(w.worker())
	defer end()
	e := &execution{s: s, task: &tdf.Task{}, log: s.log, slot: s.takeSlot(), result: tdf.Result{Started: 100, Seconds: 1}}
	s.busy++
	s.work.Add(1)
	s.drop(e, tdf.ErrNoTask)
	_, present, _ := s.timeline.bars()
	expect.MustTrue(t, len(present) > 0, present)
	expect.MustEqual(t, present[0].Outcome, "released")
}

// A worker that ends stores its last bars. A later worker of the same name adds to them, and another worker has its own.
func TestWorkersStoreTheirBars(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handle := Handle("p", func(_ context.Context, r *Round) error {
		if r.Input == "bad" {
			return context.Canceled
		}
		return nil
	})
	good, bad := w.open("good", forHandler("p"), func(p *tdf.Properties) { p.Group = "g" }), w.open("bad", forHandler("p"))
	w.timers.hold() // so that the worker waits until the bars are stored
	w.runOnce(w.worker(handle))
	w.runOnce(w.worker(handle))
	all := expect.Result(w.store.Timelines(w.Context(), []string{"w1", "w2"}, 0)).Value(t)
	got := all[0].Bars
	expect.MustLen(t, got, 2)
	expect.MustLen(t, all[1].Bars, 0)
	slices.SortFunc(got, func(a, b presence.Bar) int { return int(a.Task - b.Task) })
	for i, want := range []presence.Bar{{Task: good, Outcome: "succeeded", Group: "g"}, {Task: bad, Outcome: "failed"}} {
		want.Slot, want.Rounds, want.Start, want.End, want.Busy = 1, 1, got[i].Start, got[i].End, got[i].Busy
		expect.Equal(t, got[i], want)
		expect.Compare(t, want.Start, ">", 0)
		expect.Compare(t, want.End, ">=", want.Start)
	}
}
