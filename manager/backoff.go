package manager

import (
	"github.com/tdf-framework/tdf/internal/task"
)

// The shortest and the longest pause before a failed callback is called again.
const (
	firstPause = task.Seconds(1)
	lastPause  = task.Seconds(5 * 60)
)

// backoff holds the tasks whose callbacks must be called again, by id, and those whose callbacks have failed for good.
// The pauses exist only in memory, so after a restart the manager does not wait for them to end.
type backoff map[int64]*retry

type retry struct {
	after    task.Time    // the earliest time of the next call; 0 means that the callback is called in the next round
	pause    task.Seconds // the next pause, if the callback fails again
	attempts int          // how often the callback has failed
	givenUp  bool         // whether the callback is not called again
	round    int          // the round of Run in which the task was last seen
	notYet   error        // the callback's ErrNotYet, or nil
}

// countNew counts the tasks that b does not contain.
func (b backoff) countNew(ids []int64) int {
	n := 0
	for _, id := range ids {
		if b[id] == nil {
			n++
		}
	}
	return n
}

// upTo returns the first tasks: at most n, of which at most the given number have no entry.
func (b backoff) upTo(ids []int64, n, fresh int) []int64 {
	for i, id := range ids {
		if b[id] == nil {
			fresh--
		}
		if i == n || fresh < 0 {
			return ids[:i]
		}
	}
	return ids
}

// addFailure counts a failure and starts the next pause of a task.
func (b backoff) addFailure(id int64, round int, now task.Time) *retry {
	r := b.of(id)
	pause := max(r.pause, firstPause)
	*r = retry{after: now.Add(pause), pause: min(2*pause, lastPause), attempts: r.attempts + 1, round: round}
	return r
}

// of returns the entry of a task, and adds one if there is none.
func (b backoff) of(id int64) *retry {
	if b[id] == nil {
		b[id] = &retry{}
	}
	return b[id]
}

// notYet makes the task wait for the next round. If its callback fails later, the pauses begin with firstPause again.
func (b backoff) notYet(id int64, round int, err error) {
	b[id] = &retry{attempts: b.of(id).attempts, round: round, notYet: err}
}

// mustWait reports whether the task must still wait. It records that the task was seen in this round.
func (b backoff) mustWait(id int64, round int, now task.Time) bool {
	r := b[id]
	if r == nil {
		return false
	}
	again := r.round == round
	r.round = round
	// a later time means that Redis's clock was set back
	return r.givenUp || again || now < r.after && r.after <= now.Add(lastPause)
}

// forget removes the tasks that were not seen in this round, because their states have changed.
func (b backoff) forget(round int) {
	for id, r := range b {
		if r.round != round {
			delete(b, id)
		}
	}
}

// next returns the earliest end of a pause, or Never if no task waits.
func (b backoff) next() task.Time {
	next := task.Never
	for _, r := range b {
		if r.after > 0 && !r.givenUp {
			next = min(next, r.after)
		}
	}
	return next
}

// anyNotYet reports whether any of the tasks waits because its callback returned ErrNotYet.
func (b backoff) anyNotYet() bool {
	for _, r := range b {
		if r.after == 0 && !r.givenUp {
			return true
		}
	}
	return false
}

// givenUp counts the tasks whose callbacks are not called again.
func (b backoff) givenUp() (n int) {
	for _, r := range b {
		if r.givenUp {
			n++
		}
	}
	return n
}

// forgetGivenUp makes the manager look again whether callbacks must be called.
func (b backoff) forgetGivenUp() {
	for id, r := range b {
		if r.givenUp {
			delete(b, id)
		}
	}
}
