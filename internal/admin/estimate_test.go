package admin

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func constant(n int, s task.Seconds) []task.Seconds {
	return slices.Repeat([]task.Seconds{s}, n)
}

func TestEstimate(t *testing.T) {
	for name, c := range map[string]struct {
		work      work
		low, high float64
		unknown   string
	}{
		"nothing left":             {work: work{}},
		"no worker":                {work: work{waiting: 5, runs: constant(9, 1)}, unknown: "no worker"},
		"nothing done":             {work: work{waiting: 5, slots: 2}, unknown: "too few"},
		"two done":                 {work: work{waiting: 5, slots: 2, runs: constant(2, 1)}, unknown: "too few"},
		"stalled":                  {work: work{running: 1, slots: 1, runs: constant(9, 10), period: 30, still: 81}, unknown: "the last task finished longer ago"},
		"slow, not stalled":        {work: work{waiting: 6, slots: 1, runs: constant(9, 100), period: 30, still: 200}, low: 600, high: 600},
		"all start later":          {work: work{later: 5, slots: 2, runs: constant(9, 1)}, unknown: "start later"},
		"some start later":         {work: work{waiting: 10, later: 5, slots: 1, runs: constant(9, 3)}, low: 30, high: 30},
		"one slot":                 {work: work{waiting: 10, slots: 1, runs: constant(9, 3)}, low: 30, high: 30},
		"running tasks count half": {work: work{waiting: 8, running: 4, slots: 1, runs: constant(9, 3)}, low: 30, high: 30},
		"four slots and a tail":    {work: work{waiting: 40, slots: 4, runs: constant(9, 2)}, low: 20, high: 21.5},
		"more slots than tasks":    {work: work{waiting: 2, slots: 100, runs: constant(9, 2)}, low: 2, high: 3},
		"half of the slots work":   {work: work{waiting: 100, slots: 4, runs: constant(200, 1), done: 400, period: 200}, low: 46.9, high: 54.2},
		"too few to tell the rate": {work: work{waiting: 100, slots: 1, runs: constant(9, 1), done: 5, period: 50}, low: 100, high: 100},
		"runs of no time at all":   {work: work{waiting: 100, slots: 1, runs: constant(9, 0), done: 50, period: 5}, low: 0, high: 0},
	} {
		e := estimated(c.work)
		expect.Compare(t, math.Abs(float64(e.Low)-c.low), "<", 0.1, name, c.unknown)
		expect.Compare(t, math.Abs(float64(e.High)-c.high), "<", 0.1, name, c.unknown)
		expect.Equal(t, e.Unknown == "", c.unknown == "", name, c.unknown)
		expect.Contains(t, e.Unknown, c.unknown, name)
	}
}

type estimation struct {
	Low, High task.Seconds
	Unknown   string
}

func estimated(w work) estimation {
	low, high, unknown := w.estimate()
	return estimation{low, high, unknown}
}

// lognormal returns random run times, most of them short and a few long.
func lognormal(r *rand.Rand, n int, sigma float64) []task.Seconds {
	runs := make([]task.Seconds, n)
	for i := range runs {
		runs[i] = task.Seconds(10 * math.Exp(sigma*r.NormFloat64()))
	}
	return runs
}

// makespan returns the time that the slots need for all runs. Each slot that becomes free starts the next run.
func makespan(runs []task.Seconds, slots int) task.Seconds {
	free := make([]task.Seconds, slots)
	for _, run := range runs {
		first := slices.Index(free, slices.Min(free))
		free[first] += run
	}
	return slices.Max(free)
}

// In about 8 of 10 simulated campaigns, the true remaining time lies within the estimate.
func TestEstimateHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const tries = 2000
	early, late := 0, 0
	for range tries {
		sigma := 0.1 + 0.7*r.Float64()
		slots, left := 1+r.IntN(40), 5+r.IntN(500)
		e := estimated(work{waiting: int64(left), slots: slots, runs: lognormal(r, 10+r.IntN(190), sigma)})
		switch took := makespan(lognormal(r, left, sigma), slots); {
		case took < e.Low:
			early++
		case took > e.High:
			late++
		}
	}
	within := float64(tries-early-late) / tries
	t.Logf("%.0f %% within, %d early, %d late", 100*within, early, late)
	expect.Compare(t, within, ">=", 0.75, early, late)
	expect.Compare(t, within, "<=", 0.95, early, late)
	expect.Compare(t, late, "<=", tries/5, early)
	expect.Compare(t, early, "<=", tries/5, late)
}

func anyWork(r *rand.Rand) work {
	w := work{
		waiting: r.Int64N(1000), running: r.Int64N(20), slots: 1 + r.IntN(50), runs: lognormal(r, 3+r.IntN(200), r.Float64()),
	}
	if r.IntN(2) == 0 {
		w.done, w.period = r.Int64N(500), task.Seconds(1+r.IntN(300))
	}
	return w
}

func TestEstimateMakesSense(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		w := anyWork(r)
		e := estimated(w)
		if e.Unknown != "" {
			continue
		}
		expect.MustTrue(t, e.Low >= 0, w, e)
		expect.MustTrue(t, e.Low <= e.High, w, e)
		expect.MustTrue(t, !math.IsInf(float64(e.High), 0), w, e)
		more := w
		more.waiting += 100
		m := estimated(more)
		expect.MustTrue(t, m.High >= e.High, w, e.Low, "to", e.High, "and with 100 more", m.Low, "to", m.High)
		slower := w
		slower.runs, slower.period = slices.Clone(w.runs), 7*w.period
		for i := range slower.runs {
			slower.runs[i] *= 7
		}
		s := estimated(slower)
		if s.Unknown == "" {
			expect.MustTrue(t, near(s.High/7, e.High), w, e.Low, "to", e.High, "and seven times as slow", s.Low, "to", s.High)
			expect.MustTrue(t, near(s.Low/7, e.Low), w, e.Low, "to", e.High, "and seven times as slow", s.Low, "to", s.High)
		}
	}
}

func near(a, b task.Seconds) bool { return math.Abs(float64(a-b)) <= 1e-6*float64(b) }
