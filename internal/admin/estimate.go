package admin

import (
	"math"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// An Estimate predicts how long the remaining work takes. In about 8 of 10 cases, it takes at least Low and at most
// High.
type Estimate struct {
	Low, High time.Duration
	Unknown   string // why no estimate is possible; "" if Low and High are valid
}

// EstimateLeft estimates how long tasks take that nobody else runs. runs are the run times of the last of them that
// have finished, and done is how many have finished within the period.
func EstimateLeft(left int64, slots int, runs []time.Duration, done int64, period time.Duration) (e Estimate) {
	running := min(int64(slots), left)
	w := work{waiting: left - running, running: running, slots: slots, done: done, period: task.For(period)}
	for _, r := range runs {
		w.runs = append(w.runs, task.For(r))
	}
	low, high, unknown := w.estimate()
	return Estimate{low.Std(), high.Std(), unknown}
}

// work holds the facts from which the method estimate predicts the remaining time.
type work struct {
	waiting int64          // tasks that may run now
	running int64          // tasks that run now; on average, half of each task is done
	slots   int            // slots of the workers that claim tasks
	runs    []task.Seconds // run times of similar tasks
	later   int64          // open tasks that may not run yet; the estimate excludes them

	done   int64        // tasks that finished within the period
	period task.Seconds // the length of the period

	still task.Seconds // how long no task has finished, although a task could have finished
}

const (
	leastRuns = 3    // the minimum number of known runs for an estimate
	leastDone = 10   // the minimum number of finished tasks from which atWork computes the slots in use
	sure80    = 1.28 // an interval of this many standard deviations to each side contains 80 % of cases
)

// estimate returns bounds of the remaining time, or the reason why it is unknown. The remaining work is the sum of the
// run times of the remaining tasks. A waiting task counts with one run, a running task with half a run. The sum is
// uncertain because run times differ, and because their mean comes from a sample. The remaining time is the sum divided
// by the number of slots that run these tasks. It is longer if one long run continues alone at the end.
func (w work) estimate() (low, high task.Seconds, unknown string) {
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
	return task.Seconds(least), task.Seconds(most), ""
}

func moments(runs []task.Seconds) (mean, deviation float64) {
	for _, r := range runs {
		mean += float64(r) / float64(len(runs))
	}
	for _, r := range runs {
		deviation += (float64(r) - mean) * (float64(r) - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(runs)-1))
}

// stalled reports whether no task has finished for a minute plus twice the longest known run time.
func (w work) stalled() bool { return w.still > 2*slices.Max(w.runs)+60 }

// atWork returns bounds for the number of slots that run these tasks: the rate of finished tasks times the mean run
// time. If other tasks share the slots, or if slots are idle between runs, this number is lower than the number of all
// slots.
func (w work) atWork(mean float64) (fewest, most float64) {
	slots := float64(w.slots)
	if w.done < leastDone || float64(w.period) < 2*mean || mean == 0 {
		return slots, slots
	}
	seen := float64(w.done) / float64(w.period) * mean
	off := seen * sure80 / math.Sqrt(float64(w.done))
	return min(slots, max(seen-off, seen/2)), min(slots, seen+off)
}

// tail returns for how long the last run may continue while all other slots are idle.
func (w work) tail(together float64) float64 {
	runs := slices.Sorted(slices.Values(w.runs))
	long := runs[min(len(runs)-1, len(runs)*9/10)]
	beside := min(float64(w.slots), together)
	return float64(long) * (beside - 1) / beside
}
