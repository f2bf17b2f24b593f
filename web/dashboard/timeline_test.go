package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The bars of a page of 1,000 seconds: a second is a column.
func TestTimelineBars(t *testing.T) {
	t.Parallel()
	to := time.Unix(1_800_001_000, 0)
	at := func(second float64) tdf.Time { return tdf.Time(1_800_000_000 + second) }
	w := admin.Worker{Name: "w", Slots: 2, Alive: true, Runs: []int64{4}}
	bar := func(slot int, from, until float64, outcome string, task int64, group string) admin.Bar {
		return admin.Bar{Slot: slot, Start: at(from), End: at(until), Busy: at(until).Sub(at(from)), Rounds: 1, Outcome: outcome, Task: task, Group: group}
	}
	bars := []admin.Bar{
		bar(1, -100, 100, "succeeded", 1, "a"), bar(1, 100, 200.2, "failed", 2, "b"),
		bar(1, 300, 300.1, "failed", 3, ""), bar(1, 300.2, 300.9, "succeeded", 3, "b"), // one column: the worse one is seen
		bar(2, 500, 500, admin.BarRunning, 4, "a"), bar(2, 10, 10, admin.BarRunning, 5, "a"), // the worker does not run task 5 any more
		bar(2, 2000, 3000, "succeeded", 6, ""), bar(3, 0, 10, "succeeded", 7, ""), // in the future, and on a slot that the worker no longer has
		bar(1, -9000, -8000, "succeeded", 8, ""),
	}
	draw := func(colour string, full bool) *timelinePage {
		p := &timelinePage{Colour: colour, From: time.Unix(1_800_000_000, 0), To: to}
		p.draw([]admin.Worker{w}, []admin.Timeline{{Bars: bars, Full: full}})
		return p
	}
	p := draw("outcome", false)
	one := p.Workers[0]
	expect.Equal(t, one.Paths, []barPath{
		{"t-failed", "M100 1h99.5v10h-99.5zM300 1h1v10h-1z"}, {"t-running", "M500 13h499.5v10h-499.5z"}, {"t-succeeded", "M0 1h99.5v10h-99.5z"},
	})
	expect.Equal(t, []string{p.Busy, one.Busy, one.Rows[0].Busy, one.Rows[1].Busy}, []string{"36 %", "36 %", "20 %", "50 %"})
	expect.MustEqual(t, one.Rows[0].Rounds, 4)
	expect.Equal(t, one.Rows[0].Failed, 2)
	expect.True(t, one.Since.IsZero(), one.Rows[0])

	p = draw("campaign", false)
	expect.Equal(t, p.Legend, []legendKey{{"t-0", "a"}, {"t-1", "b"}, {"t-other", "others, several campaigns, or none"}})
	expect.Equal(t, p.Workers[0].Paths[0], barPath{"t-0", "M0 1h99.5v10h-99.5zM500 13h499.5v10h-499.5z"})
	bars = bars[1:5]
	expect.Equal(t, draw("outcome", true).Workers[0].Since, to.Add(-15*time.Minute), "the bars of a full timeline begin")
}

// A page stays small, whatever the workers say.
func TestTimelineIsBounded(t *testing.T) {
	t.Parallel()
	to := time.Unix(1_800_001_000, 0)
	var all []admin.Worker
	for i := range 200 {
		all = append(all, admin.Worker{Name: fmt.Sprint("w", i), Slots: 1 << 40})
	}
	p := &timelinePage{Colour: "campaign", From: to.Add(-time.Hour), To: to}
	workers := p.choose(all, "99999999999")
	expect.Len(t, workers, timelineWorkers, p.Page)
	expect.Equal(t, p.Page, 20)
	expect.Equal(t, p.After, 0, p.Page)
	expect.Equal(t, p.Before, 19, p.Page)
	timelines := make([]admin.Timeline, len(workers))
	for i := range timelines {
		for n := range 1000 {
			start := tdf.At(to).Add(-tdf.Seconds(n))
			timelines[i].Bars = append(timelines[i].Bars, admin.Bar{Slot: 1 + n%100, Start: start, End: 9e10, Rounds: 1 << 40, Outcome: "failed", Task: 1, Group: strings.Repeat("<", n%100)})
		}
	}
	p.draw(workers, timelines)
	size := 0
	for _, w := range p.Workers {
		expect.Len(t, w.Rows, timelineSlots)
		expect.Compare(t, w.More, ">", 1<<30)
		for _, path := range w.Paths {
			size += len(path.D)
		}
	}
	expect.Compare(t, size, "<", 500_000)
	expect.Compare(t, len(p.Legend), "<=", timelineColours+1, "bytes of paths:", size)
}
