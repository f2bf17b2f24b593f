package run

import (
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// owned are the tasks that a call has opened. Only these count: others of the same campaign belong to another call. The
// call waits for the pending ones, whose results it has not handled.
type owned struct {
	spans   [][2]int64 // first and last ids, ascending; one span for most calls, so that a million tasks need no memory
	pending map[int64]bool
	order   []int64          // ascending; has all pending ids, and some that are pending no more
	reopens map[int64]int    // of handled tasks that were retried before
	bad     map[int64]string // outcomes of handled tasks that did not succeed

	opened, finished, failed, left int64 // left are the tasks that were cancelled
}

func newOwned() owned {
	return owned{pending: map[int64]bool{}, reopens: map[int64]int{}, bad: map[int64]string{}}
}

// add adds a task that was opened.
func (o *owned) add(id int64) {
	last := len(o.spans) - 1
	switch {
	case last >= 0 && id == o.spans[last][1]+1:
		o.spans[last][1] = id
	default:
		o.spans = append(o.spans, [2]int64{id, id})
	}
	o.opened++
	o.expect(id)
}

func (o *owned) has(id int64) bool {
	_, found := slices.BinarySearchFunc(o.spans, id, func(span [2]int64, id int64) int {
		switch {
		case span[1] < id:
			return -1
		case span[0] > id:
			return 1
		}
		return 0
	})
	return found
}

// mayGet reports whether an opening that runs may add a task, since ids ascend.
func (o *owned) mayGet(id int64) bool { return len(o.spans) == 0 || id > o.spans[len(o.spans)-1][1] }

// expect makes a task pending.
func (o *owned) expect(id int64) {
	o.pending[id] = true
	if at, found := slices.BinarySearch(o.order, id); !found {
		o.order = slices.Insert(o.order, at, id)
	}
}

// isNews reports whether a finished task was not handled since its last retry.
func (o *owned) isNews(t *manager.Task) bool { return o.pending[t.ID] || t.Reopens > o.reopens[t.ID] }

// handle counts the result of a task.
func (o *owned) handle(t *manager.Task) {
	if !o.pending[t.ID] {
		o.reopen(t.ID)
	}
	o.end(t.ID)
	if t.Reopens > 0 {
		o.reopens[t.ID] = t.Reopens
	}
	switch t.Outcome {
	case string(task.Succeeded):
		return
	case task.Cancelled:
		o.left++
	default:
		o.failed++
	}
	o.bad[t.ID] = t.Outcome
}

// reopen makes a handled task pending again, because it was retried.
func (o *owned) reopen(id int64) {
	switch outcome, bad := o.bad[id]; {
	case outcome == task.Cancelled:
		o.left--
	case bad:
		o.failed--
	}
	delete(o.bad, id)
	o.finished--
	o.expect(id)
}

// end counts a task that is pending no more.
func (o *owned) end(id int64) {
	delete(o.pending, id)
	o.finished++
	if len(o.order) > 2*len(o.pending)+100 {
		o.order = slices.DeleteFunc(o.order, func(id int64) bool { return !o.pending[id] })
	}
}

// after returns the first pending tasks with higher ids, at most the given number.
func (o *owned) after(id int64, most int) (ids []int64) {
	at, _ := slices.BinarySearch(o.order, id+1)
	for ; at < len(o.order) && len(ids) < most; at++ {
		if o.pending[o.order[at]] {
			ids = append(ids, o.order[at])
		}
	}
	return ids
}
