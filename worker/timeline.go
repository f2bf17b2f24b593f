package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// timelinePause is the time between two calls that store bars, so that not every round needs a call.
const timelinePause = time.Second

// mergedPerSlot bounds a bar of several rounds: for a worker with n slots, the bar is at most n times as long. So even
// if rounds are short, the bars that Redis keeps of a worker show its last hour.
const mergedPerSlot tdf.Seconds = 10

// A timeline has the bars of a worker that are not in Redis, or may still change (docs/dashboard.md, "Timeline"). The
// zero timeline merges no rounds.
type timeline struct {
	longest tdf.Seconds // the length of the longest bar of several rounds

	mu      sync.Mutex
	slots   map[int]*slotLine
	ended   []presence.Bar // do not change any more
	changed bool           // since the last call to Redis
}

// A slotLine is the present of a slot. A bar without rounds stands for none.
type slotLine struct {
	last    presence.Bar // may still grow
	running presence.Bar
	seen    bool // the round already ran when bars were last taken
	shown   bool // Redis has the running bar
}

func (t *timeline) slot(n int) *slotLine {
	if t.slots == nil {
		t.slots = map[int]*slotLine{}
	}
	if t.slots[n] == nil {
		t.slots[n] = &slotLine{}
	}
	return t.slots[n]
}

// begin records that a slot begins a round.
func (t *timeline) begin(b presence.Bar) {
	if b.Slot > presence.MaxBarSlot {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.slot(b.Slot)
	b.End, b.Rounds, b.Outcome = b.Start, 1, presence.BarRunning
	line.running, line.seen, line.shown = b, false, false
}

// end records that the round of a slot has ended. A bar without a start stands for a round that did not run.
func (t *timeline) end(b presence.Bar) {
	if b.Slot > presence.MaxBarSlot {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.slot(b.Slot)
	t.changed = t.changed || line.shown
	line.running = presence.Bar{}
	if b.Start == 0 {
		return
	}
	t.changed = true
	b.Rounds, b.Busy = 1, b.End.Sub(b.Start)
	if merge(&line.last, &b, t.longest) {
		return
	}
	if line.last.Rounds > 0 {
		t.ended = append(t.ended[max(0, len(t.ended)+1-presence.MaxBars):], line.last)
	}
	line.last = b
}

// merge adds the next round of a slot to a bar, unless the bar would become too long.
func merge(bar, next *presence.Bar, longest tdf.Seconds) bool {
	if bar.Rounds == 0 || next.Start < bar.End || next.End.Sub(bar.Start) > longest {
		return false
	}
	bar.End = next.End
	bar.Busy += next.Busy
	bar.Rounds++
	if next.Worse() >= bar.Worse() {
		bar.Outcome, bar.Task, bar.Round = next.Outcome, next.Task, next.Round
	}
	if bar.Group != next.Group {
		bar.Group = ""
	}
	return true
}

// take returns the bars for the next call to Redis. If nothing has changed, ok is false. A running round becomes a bar
// when it is taken for the second time, because most rounds of short programs end before.
func (t *timeline) take() (ended, present []presence.Bar, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.slots {
		if line.running.Rounds > 0 && line.seen && !line.shown {
			line.shown, t.changed = true, true
		}
		line.seen = true
		for _, b := range []presence.Bar{line.last, line.running} {
			if b.Rounds > 0 && (b.Outcome != presence.BarRunning || line.shown) {
				present = append(present, b)
			}
		}
	}
	ended, ok = t.ended, t.changed
	t.ended, t.changed = nil, false
	return ended, present, ok
}

// keepTimeline stores the bars of the supervisor until ctx ends, and then the last ones.
func (s *lane) keepTimeline(ctx context.Context) {
	for wait(ctx, time.After(timelinePause)) {
		s.sendTimeline(ctx)
	}
	last, end := s.outlive(ctx, timelinePause, timelinePause)
	defer end(nil)
	defer context.AfterFunc(s.delivering, func() { end(nil) })()
	ended, present, _ := s.timeline.take()
	if all := slices.Concat(ended, present); len(all) > 0 { // a later worker of this name keeps them
		s.storeBars(last, all, nil)
	}
}

func (s *lane) sendTimeline(ctx context.Context) {
	if ended, present, ok := s.timeline.take(); ok {
		s.storeBars(ctx, ended, present)
	}
}

func (s *lane) storeBars(ctx context.Context, ended, present []presence.Bar) {
	if err := s.broker.AddBars(ctx, s.name, ended, present); err != nil {
		s.log.Debug("bars of the timeline are lost", "error", err)
	}
}

// bar returns the bar of an execution that has ended. If it did not run, the bar has no start.
func (e *execution) bar(success bool) presence.Bar {
	b := e.emptyBar()
	b.Start, b.End = e.result.Started, e.result.Started.Add(max(0, e.result.Seconds))
	switch {
	case success:
		b.Outcome = "succeeded"
	case errors.Is(e.cause, errTimedOut):
		b.Outcome = "timed_out"
	case e.cause != nil, e.dropped:
		b.Outcome = "released"
	default:
		b.Outcome = "failed"
	}
	return b
}

func (e *execution) emptyBar() presence.Bar {
	return presence.Bar{Slot: e.slot, Task: e.task.ID, Round: e.task.Round, Group: e.task.Group}
}
