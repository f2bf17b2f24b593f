package run

import (
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// owned are the tasks that a call has opened. Only these count: others of the same campaign belong to another call. The
// call waits for the pending ones, whose results it has not handled.
type owned struct {
	spans   [][2]int64 // first and last ids, ascending; one span for most calls, so that a million tasks need no memory
	pending map[int64]item
	order   []int64       // ascending; has all pending ids, and some that are pending no more
	reopens map[int64]int // of handled tasks that were retried before
	bad     map[int64]ill // the handled tasks that did not succeed

	opened, finished, failed, left int64 // left are the tasks that were cancelled
}

// An item is what a call knows of the input of its task, and Redis perhaps does not.
type item struct {
	number int64         // of the input; 0 if the call has forgotten it
	shown  string        // the command as people see it; "" if the task's input is
	params []sweep.Param // the values, whose bytes may be no text; nil if nothing needs them
	stdin  string        // the file with the stdin of the command; "" for none
}

// An ill is a task that did not succeed.
type ill struct {
	outcome string
	item    item
}

func newOwned() owned {
	return owned{pending: map[int64]item{}, reopens: map[int64]int{}, bad: map[int64]ill{}}
}

// add adds a task that was opened.
func (o *owned) add(id int64, of item) {
	last := len(o.spans) - 1
	switch {
	case last >= 0 && id == o.spans[last][1]+1:
		o.spans[last][1] = id
	default:
		o.spans = append(o.spans, [2]int64{id, id})
	}
	o.opened++
	o.expect(id, of)
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
func (o *owned) expect(id int64, of item) {
	o.pending[id] = of
	if at, found := slices.BinarySearch(o.order, id); !found {
		o.order = slices.Insert(o.order, at, id)
	}
}

func (o *owned) isPending(id int64) bool {
	_, is := o.pending[id]
	return is
}

// isNews reports whether a finished task was not handled since its last retry.
func (o *owned) isNews(t *manager.Task) bool { return o.isPending(t.ID) || t.Reopens > o.reopens[t.ID] }

// handle counts the result of a task.
func (o *owned) handle(t *manager.Task) {
	if !o.isPending(t.ID) {
		o.reopen(t.ID)
	}
	of := o.pending[t.ID]
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
	o.bad[t.ID] = ill{t.Outcome, of}
}

// reopen makes a handled task pending again, because it was retried.
func (o *owned) reopen(id int64) {
	before, bad := o.bad[id]
	switch {
	case before.outcome == task.Cancelled:
		o.left--
	case bad:
		o.failed--
	}
	delete(o.bad, id)
	o.finished--
	o.expect(id, before.item)
}

// end counts a task that is pending no more.
func (o *owned) end(id int64) {
	delete(o.pending, id)
	o.finished++
	if len(o.order) > 2*len(o.pending)+100 {
		o.order = slices.DeleteFunc(o.order, func(id int64) bool { return !o.isPending(id) })
	}
}

// after returns the first pending tasks with higher ids, at most the given number.
func (o *owned) after(id int64, most int) (ids []int64) {
	at, _ := slices.BinarySearch(o.order, id+1)
	for ; at < len(o.order) && len(ids) < most; at++ {
		if o.isPending(o.order[at]) {
			ids = append(ids, o.order[at])
		}
	}
	return ids
}
