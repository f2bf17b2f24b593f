package admin

import (
	"math"
	"slices"

	"github.com/tdf-framework/tdf"
)

// Work is what an [Estimate] is made from.
type Work struct {
	Waiting int64         // tasks that are still to run, as far as they may run now
	Running int64         // tasks that run; on average they are half done
	Slots   int           // how many programs can run at once
	Runs    []tdf.Seconds // how long tasks like these ran

	Later int64 // tasks that may not run yet; the estimate is without them

	// What was seen to end: so many tasks in so many seconds.
	Done int64
	Over tdf.Seconds

	Still tdf.Seconds // since one was seen to end, or there was nothing that could have
}

// An Estimate says when work will be done: with some 80 % certainty between Low and High from now.
type Estimate struct {
	Low, High tdf.Seconds
	Unknown   string // why there is no estimate; "": there is one
}

const (
	leastRuns = 3    // to say anything about others
	leastDone = 10   // to say how many run at once by how many ended
	sure80    = 1.28 // standard deviations to each side that hold 80 %
)

// Estimate says how long the work will take, by the times that other runs took: what is left is the sum of
// as many runs, which is uncertain by how much runs differ, and by how little is known of their mean; it is
// shared by the slots, or by those of them that were seen to be at work; and in the end, one long run may
// be left alone. There is none as long as nothing is known, or nothing moves.
func (w Work) Estimate() Estimate {
	left := float64(w.Waiting) + float64(w.Running)/2
	switch {
	case left == 0 && w.Later > 0:
		return Estimate{Unknown: "all that is left starts later"}
	case left == 0:
		return Estimate{}
	case w.Slots < 1:
		return Estimate{Unknown: "no worker claims tasks"}
	case len(w.Runs) < leastRuns:
		return Estimate{Unknown: "too few tasks are done to tell"}
	}
	mean, deviation := moments(w.Runs)
	if w.stalled() {
		return Estimate{Unknown: "nothing has ended for longer than any run took"}
	}
	n := float64(len(w.Runs))
	spread := sure80 * deviation * math.Sqrt(left+left*left/n)
	slowest, fastest := w.atWork(mean)
	together := float64(w.Waiting + w.Running)
	low := max(0, left*mean-spread) / min(fastest, together)
	high := (left*mean+spread)/min(slowest, together) + w.tail(together)
	return Estimate{Low: tdf.Seconds(low), High: tdf.Seconds(high)}
}

func moments(runs []tdf.Seconds) (mean, deviation float64) {
	for _, r := range runs {
		mean += float64(r) / float64(len(runs))
	}
	for _, r := range runs {
		deviation += (float64(r) - mean) * (float64(r) - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(runs)-1))
}

// stalled: tasks run, or could, and none of them ends.
func (w Work) stalled() bool { return w.Still > 2*slices.Max(w.Runs)+60 }

// atWork returns how many slots this work has, by what was seen to end: as many as run at once are rate ×
// mean. They may be fewer than there are, where others share them, or much time goes by between two runs.
func (w Work) atWork(mean float64) (fewest, most float64) {
	slots := float64(w.Slots)
	if w.Done < leastDone || float64(w.Over) < 2*mean || mean == 0 {
		return slots, slots
	}
	seen := float64(w.Done) / float64(w.Over) * mean
	off := seen * sure80 / math.Sqrt(float64(w.Done))
	return min(slots, max(seen-off, seen/2)), min(slots, seen+off)
}

// tail is how long the last run may go on alone, when the other slots have nothing more to do.
func (w Work) tail(together float64) float64 {
	runs := slices.Sorted(slices.Values(w.Runs))
	long := runs[min(len(runs)-1, len(runs)*9/10)]
	beside := min(float64(w.Slots), together)
	return float64(long) * (beside - 1) / beside
}
