package admin

import (
	"math"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
)

// An Estimate says when the remaining work will be done: in about 8 of 10 cases between Low and High from now.
type Estimate struct {
	Low, High time.Duration
	Unknown   string // why there is no estimate; "": there is one
}

// work has the facts that an estimate is made from.
type work struct {
	waiting int64         // tasks that may run now
	running int64         // tasks that run; on average they are half done
	slots   int           // of the workers that claim tasks
	runs    []tdf.Seconds // how long similar tasks ran
	later   int64         // tasks that may not run yet; the estimate is without them

	done int64       // tasks that were seen to finish
	over tdf.Seconds // in this time

	still tdf.Seconds // how long no task has finished though one could have
}

const (
	leastRuns = 3    // the least number of runs for an estimate
	leastDone = 10   // the least number of finished tasks to derive the slots at work
	sure80    = 1.28 // standard deviations to each side that hold 80 %
)

// estimate returns how long the work will take, between low and high, or why that is unknown. The remaining time is the sum of
// one run for each task. It is uncertain because runs differ, and because their mean is known only from a sample. The slots, or as
// many slots as were at work lately, share the sum. At the end, one long run may go on alone.
func (w work) estimate() (low, high tdf.Seconds, unknown string) {
	left := float64(w.waiting) + float64(w.running)/2
	switch {
	case left == 0 && w.later > 0:
		return 0, 0, "all remaining tasks start later"
	case left == 0:
		return 0, 0, ""
	case w.slots < 1:
		return 0, 0, "no worker claims tasks"
	case len(w.runs) < leastRuns:
		return 0, 0, "too few tasks have finished"
	}
	mean, deviation := moments(w.runs)
	if w.stalled() {
		return 0, 0, "the last task finished longer ago than the longest run took"
	}
	n := float64(len(w.runs))
	spread := sure80 * deviation * math.Sqrt(left+left*left/n)
	slowest, fastest := w.atWork(mean)
	together := float64(w.waiting + w.running)
	least := max(0, left*mean-spread) / min(fastest, together)
	most := (left*mean+spread)/min(slowest, together) + w.tail(together)
	return tdf.Seconds(least), tdf.Seconds(most), ""
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

// stalled reports whether no task finishes, though a task runs or could run.
func (w work) stalled() bool { return w.still > 2*slices.Max(w.runs)+60 }

// atWork returns how many slots run this work: the rate of finished tasks × the mean run time. They are fewer than all slots if
// other tasks share the slots, or if much time passes between two runs.
func (w work) atWork(mean float64) (fewest, most float64) {
	slots := float64(w.slots)
	if w.done < leastDone || float64(w.over) < 2*mean || mean == 0 {
		return slots, slots
	}
	seen := float64(w.done) / float64(w.over) * mean
	off := seen * sure80 / math.Sqrt(float64(w.done))
	return min(slots, max(seen-off, seen/2)), min(slots, seen+off)
}

// tail returns how long the last run may go on while all other slots are idle.
func (w work) tail(together float64) float64 {
	runs := slices.Sorted(slices.Values(w.runs))
	long := runs[min(len(runs)-1, len(runs)*9/10)]
	beside := min(float64(w.slots), together)
	return float64(long) * (beside - 1) / beside
}
