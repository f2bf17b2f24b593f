package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

// Bounds of the timeline of workers.
const (
	timelineWorkers = 10   // on a page
	timelineSlots   = 64   // of a worker; the busy share counts all slots
	timelineWidth   = 1000 // bars of a slot that begin and end in the same of so many columns are one bar
	timelineRow     = 12   // the height of a slot
	timelineColours = 7    // campaigns with a colour of their own
)

// timelineWindows are the times that the page can show, until now.
var timelineWindows = []struct {
	Name, Label string
	length      time.Duration
}{
	{"15m", "15 minutes", 15 * time.Minute},
	{"1h", "1 hour", time.Hour},
	{"6h", "6 hours", 6 * time.Hour},
	{"1d", "1 day", 24 * time.Hour},
}

// A timelinePage shows what the slots of workers ran. All choices are in the address.
type timelinePage struct {
	Window, Colour, Worker string
	From, To               time.Time
	Workers                []timelineOf
	Busy                   string // of all workers of this page
	Legend                 []legendKey
	Page, Before, After    int // Before and After are 0 if there is no such page
}

// Title returns the title of the page.
func (*timelinePage) Title() string { return "Timeline" }

// Windows returns the choices of the window.
func (*timelinePage) Windows() any { return timelineWindows }

type legendKey struct{ Class, Label string }

// A timelineOf is the timeline of one worker.
type timelineOf struct {
	admin.Worker
	Rows   []slotRow
	More   int // slots without a row
	Height int
	Paths  []barPath
	Busy   string
	Since  time.Time // from which bars are known, if Redis has forgotten earlier ones
	Empty  bool

	busy, of float64 // seconds
}

// A slotRow is what a slot ran, in numbers.
type slotRow struct {
	Number, Rounds, Failed int
	Busy                   string
	Last                   int64 // the id of the task of the last bar

	busy  float64
	cells []*timelineBar
}

// A barPath has the bars of one colour.
type barPath struct{ Class, D string }

// A timelineBar is a bar within the window.
type timelineBar struct {
	admin.Bar
	from, to float64 // in seconds since the beginning of the window
	class    string
}

func loadTimeline(ctx context.Context, v *visit) (any, error) {
	page := &timelinePage{Window: "1h", Colour: "outcome", Worker: v.query.Get("worker"), Page: 1}
	length := time.Hour
	for _, w := range timelineWindows {
		if w.Name == v.query.Get("window") {
			page.Window, length = w.Name, w.length
		}
	}
	if v.query.Get("colour") == "campaign" {
		page.Colour = "campaign"
	}
	var err error
	if page.To, err = v.place().manager.Now(ctx); err != nil {
		return nil, err
	}
	page.From = page.To.Add(-length)
	workers, err := v.place().admin.Workers(ctx)
	if err != nil {
		return nil, err
	}
	workers = page.choose(workers, v.query.Get("page"))
	names := make([]string, len(workers))
	for i := range workers {
		names[i] = workers[i].Name
	}
	timelines, err := v.place().admin.Timelines(ctx, names, page.From)
	if err != nil {
		return nil, err
	}
	page.draw(workers, timelines)
	return page, nil
}

// choose returns the workers of the page.
func (p *timelinePage) choose(workers []admin.Worker, number string) []admin.Worker {
	if p.Worker != "" {
		workers = slices.DeleteFunc(workers, func(w admin.Worker) bool { return w.Name != p.Worker })
	}
	pages := max(1, (len(workers)+timelineWorkers-1)/timelineWorkers)
	n, _ := strconv.Atoi(number)
	p.Page = min(max(n, 1), pages)
	p.Before = p.Page - 1
	if p.Page < pages {
		p.After = p.Page + 1
	}
	return workers[(p.Page-1)*timelineWorkers : min(len(workers), p.Page*timelineWorkers)]
}

func (p *timelinePage) draw(workers []admin.Worker, timelines []admin.Timeline) {
	bars := make([][]timelineBar, len(workers))
	for i := range workers {
		bars[i] = p.within(&workers[i], timelines[i].Bars)
	}
	p.colour(bars)
	var busy, of float64
	for i := range workers {
		one := p.timelineOf(workers[i], bars[i], timelines[i].Full)
		busy, of = busy+one.busy, of+one.of
		p.Workers = append(p.Workers, one)
	}
	p.Busy = busyShare(busy, of)
}

func busyShare(busy, of float64) string {
	if of <= 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*min(1, busy/of))
}

// within returns the bars in the window. A running bar ends now. It is ignored if the worker does not run the task any
// more.
func (p *timelinePage) within(w *admin.Worker, bars []admin.Bar) (all []timelineBar) {
	from, now := tdf.At(p.From), tdf.At(p.To)
	for _, b := range bars {
		if b.Outcome == admin.BarRunning {
			if !w.Alive || !slices.Contains(w.Runs, b.Task) {
				continue
			}
			b.End = max(now, b.Start)
			b.Busy = b.End.Sub(b.Start)
		}
		start, end := max(b.Start, from), min(b.End, now)
		if start <= end {
			all = append(all, timelineBar{Bar: b, from: float64(start.Sub(from)), to: float64(end.Sub(from))})
		}
	}
	slices.SortStableFunc(all, func(x, y timelineBar) int { return x.Slot - y.Slot })
	return all
}

// colour gives each bar a class, and makes the legend.
func (p *timelinePage) colour(bars [][]timelineBar) {
	if p.Colour == "outcome" {
		p.Legend = []legendKey{
			{"t-running", "running"},
			{"t-succeeded", "succeeded"},
			{"t-released", "released or lost"},
			{"t-failed", "failed"},
			{"t-timed_out", "timed out"},
		}
	}
	rounds := map[string]int{}
	for _, of := range bars {
		for i := range of {
			of[i].class = "t-" + of[i].Outcome
			rounds[of[i].Group] += of[i].Rounds
		}
	}
	if p.Colour == "outcome" {
		return
	}
	delete(rounds, "")
	names := slices.SortedFunc(maps.Keys(rounds), func(x, y string) int {
		return cmp.Or(rounds[y]-rounds[x], strings.Compare(x, y))
	})
	names = names[:min(len(names), timelineColours)]
	slices.Sort(names)
	for i, name := range names {
		p.Legend = append(p.Legend, legendKey{fmt.Sprintf("t-%d", i), name})
	}
	p.Legend = append(p.Legend, legendKey{"t-other", "others, several campaigns, or none"})
	for _, of := range bars {
		for i := range of {
			of[i].class = "t-other"
			if n := slices.Index(names, of[i].Group); n >= 0 {
				of[i].class = p.Legend[n].Class
			}
		}
	}
}

func (p *timelinePage) timelineOf(w admin.Worker, bars []timelineBar, full bool) timelineOf {
	all := timelineOf{Worker: w, Empty: len(bars) == 0}
	length := p.To.Sub(p.From).Seconds()
	known := length
	if full && len(bars) > 0 {
		first := slices.MinFunc(bars, func(x, y timelineBar) int { return int(1000 * (x.from - y.from)) }).from
		known, all.Since = length-first, p.From.Add(tdf.Seconds(first).Std())
	}
	most := max(1, min(w.Slots, timelineSlots))
	all.Rows = make([]slotRow, most)
	for i := range bars {
		b := &bars[i]
		busy := b.to - b.from
		if whole := float64(b.End.Sub(b.Start)); whole > 0 {
			busy *= float64(b.Busy) / whole
		}
		all.busy += busy
		if b.Slot >= 1 && b.Slot <= most {
			all.Rows[b.Slot-1].add(b, busy, length)
		}
	}
	all.of = known * float64(min(max(w.Slots, 1), admin.MaxBarSlot))
	all.Busy = busyShare(all.busy, all.of)
	all.More = max(0, w.Slots-most)
	paths := map[string]*strings.Builder{}
	for i := range all.Rows {
		row := &all.Rows[i]
		row.Number, row.Busy = i+1, busyShare(row.busy, known)
		row.draw(timelineRow*i, paths)
	}
	all.Height = timelineRow * most
	for _, class := range slices.Sorted(maps.Keys(paths)) {
		all.Paths = append(all.Paths, barPath{class, paths[class].String()})
	}
	return all
}

// add adds a bar to a row. Where several bars have the same column, the worst one is seen.
func (r *slotRow) add(b *timelineBar, busy, length float64) {
	r.busy += busy
	r.Rounds += b.Rounds
	r.Last = b.Task
	if b.Outcome == "failed" || b.Outcome == "timed_out" {
		r.Failed++
	}
	if r.cells == nil {
		r.cells = make([]*timelineBar, timelineWidth)
	}
	first := min(timelineWidth-1, int(timelineWidth*b.from/length))
	last := max(first+1, min(timelineWidth, int(timelineWidth*b.to/length)))
	for x := first; x < last; x++ {
		if r.cells[x] == nil || r.cells[x].Worse() <= b.Worse() {
			r.cells[x] = b
		}
	}
}

// draw adds the bars of a row to the paths of their colours. Between two long bars there is a gap of half a column.
func (r *slotRow) draw(y int, paths map[string]*strings.Builder) {
	for x := 0; x < len(r.cells); {
		b, first := r.cells[x], x
		for x < len(r.cells) && r.cells[x] == b {
			x++
		}
		if b == nil {
			continue
		}
		width := float64(x - first)
		if width > 2 {
			width -= 0.5
		}
		if paths[b.class] == nil {
			paths[b.class] = &strings.Builder{}
		}
		fmt.Fprintf(paths[b.class], "M%d %dh%gv%dh-%gz", first, y+1, width, timelineRow-2, width)
	}
	r.cells = nil
}
