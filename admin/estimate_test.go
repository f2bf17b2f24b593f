package admin_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

func constant(n int, s tdf.Seconds) []tdf.Seconds {
	return slices.Repeat([]tdf.Seconds{s}, n)
}

func TestEstimate(t *testing.T) {
	for name, c := range map[string]struct {
		work      admin.Work
		low, high float64
		unknown   string
	}{
		"nothing left":             {work: admin.Work{}},
		"no worker":                {work: admin.Work{Waiting: 5, Runs: constant(9, 1)}, unknown: "no worker"},
		"nothing done":             {work: admin.Work{Waiting: 5, Slots: 2}, unknown: "too few"},
		"two done":                 {work: admin.Work{Waiting: 5, Slots: 2, Runs: constant(2, 1)}, unknown: "too few"},
		"stalled":                  {work: admin.Work{Running: 1, Slots: 1, Runs: constant(9, 10), Over: 30, Still: 81}, unknown: "nothing has ended"},
		"slow, not stalled":        {work: admin.Work{Waiting: 6, Slots: 1, Runs: constant(9, 100), Over: 30, Still: 200}, low: 600, high: 600},
		"all start later":          {work: admin.Work{Later: 5, Slots: 2, Runs: constant(9, 1)}, unknown: "starts later"},
		"some start later":         {work: admin.Work{Waiting: 10, Later: 5, Slots: 1, Runs: constant(9, 3)}, low: 30, high: 30},
		"one slot":                 {work: admin.Work{Waiting: 10, Slots: 1, Runs: constant(9, 3)}, low: 30, high: 30},
		"those that run are half":  {work: admin.Work{Waiting: 8, Running: 4, Slots: 1, Runs: constant(9, 3)}, low: 30, high: 30},
		"four slots and a tail":    {work: admin.Work{Waiting: 40, Slots: 4, Runs: constant(9, 2)}, low: 20, high: 21.5},
		"more slots than tasks":    {work: admin.Work{Waiting: 2, Slots: 100, Runs: constant(9, 2)}, low: 2, high: 3},
		"half of the slots work":   {work: admin.Work{Waiting: 100, Slots: 4, Runs: constant(200, 1), Done: 400, Over: 200}, low: 46.9, high: 54.2},
		"too few to tell the rate": {work: admin.Work{Waiting: 100, Slots: 1, Runs: constant(9, 1), Done: 5, Over: 50}, low: 100, high: 100},
		"runs of no time at all":   {work: admin.Work{Waiting: 100, Slots: 1, Runs: constant(9, 0), Done: 50, Over: 5}, low: 0, high: 0},
	} {
		e := c.work.Estimate()
		if !(math.Abs(float64(e.Low)-c.low) < 0.1) || !(math.Abs(float64(e.High)-c.high) < 0.1) ||
			(e.Unknown == "") != (c.unknown == "") || !strings.Contains(e.Unknown, c.unknown) {
			t.Errorf("%s: got %.1f to %.1f, %q; want %.1f to %.1f, %q", name, e.Low, e.High, e.Unknown, c.low, c.high, c.unknown)
		}
	}
}

// lognormal are times of runs, most of them short, few long.
func lognormal(r *rand.Rand, n int, sigma float64) []tdf.Seconds {
	runs := make([]tdf.Seconds, n)
	for i := range runs {
		runs[i] = tdf.Seconds(10 * math.Exp(sigma*r.NormFloat64()))
	}
	return runs
}

// makespan is how long it takes that slots run all of these, one after the other.
func makespan(runs []tdf.Seconds, slots int) tdf.Seconds {
	free := make([]tdf.Seconds, slots)
	for _, run := range runs {
		first := slices.Index(free, slices.Min(free))
		free[first] += run
	}
	return slices.Max(free)
}

// Of many pieces of work, about 8 in 10 are done within the estimate.
func TestEstimateHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const tries = 2000
	early, late := 0, 0
	for range tries {
		sigma := 0.1 + 0.7*r.Float64()
		slots, left := 1+r.IntN(40), 5+r.IntN(500)
		e := admin.Work{Waiting: int64(left), Slots: slots, Runs: lognormal(r, 10+r.IntN(190), sigma)}.Estimate()
		switch took := makespan(lognormal(r, left, sigma), slots); {
		case took < e.Low:
			early++
		case took > e.High:
			late++
		}
	}
	within := float64(tries-early-late) / tries
	t.Logf("%.0f %% within, %d early, %d late", 100*within, early, late)
	if within < 0.75 || within > 0.95 || late > tries/5 || early > tries/5 {
		t.Errorf("%.0f %% are within the estimate, %d early, %d late", 100*within, early, late)
	}
}

func anyWork(r *rand.Rand) admin.Work {
	w := admin.Work{
		Waiting: r.Int64N(1000), Running: r.Int64N(20), Slots: 1 + r.IntN(50), Runs: lognormal(r, 3+r.IntN(200), r.Float64()),
	}
	if r.IntN(2) == 0 {
		w.Done, w.Over = r.Int64N(500), tdf.Seconds(1+r.IntN(300))
	}
	return w
}

func TestEstimateMakesSense(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		w := anyWork(r)
		e := w.Estimate()
		if e.Unknown != "" {
			continue
		}
		if !(e.Low >= 0 && e.Low <= e.High) || math.IsInf(float64(e.High), 0) {
			t.Fatalf("%+v: %+v", w, e)
		}
		more := w
		more.Waiting += 100
		if m := more.Estimate(); m.High < e.High {
			t.Fatalf("%+v: %v to %v, and with 100 more %v to %v", w, e.Low, e.High, m.Low, m.High)
		}
		slower := w
		slower.Runs, slower.Over = slices.Clone(w.Runs), 7*w.Over
		for i := range slower.Runs {
			slower.Runs[i] *= 7
		}
		if s := slower.Estimate(); s.Unknown == "" && (!near(s.High/7, e.High) || !near(s.Low/7, e.Low)) {
			t.Fatalf("%+v: %v to %v, and seven times as slow %v to %v", w, e.Low, e.High, s.Low, s.High)
		}
	}
}

func near(a, b tdf.Seconds) bool { return math.Abs(float64(a-b)) <= 1e-6*float64(b) }
