package manager

import (
	"github.com/tdf-framework/tdf"
)

// The shortest and the longest pause before a failed callback is called again.
const (
	firstPause = tdf.Seconds(1)
	lastPause  = tdf.Seconds(5 * 60)
)

// backoff holds the tasks whose callbacks must be called again, by id. It exists only in memory, so after a restart the
// manager does not wait for the pauses to end.
type backoff map[int64]*retry

type retry struct {
	after tdf.Time    // the earliest time of the next call; 0 means that the callback is called in the next round
	pause tdf.Seconds // the next pause, if the callback fails again
	round int         // the round of Run in which the task was last seen
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

// addFailure starts the next pause of a task, and returns the length of the pause.
func (b backoff) addFailure(id int64, round int, now tdf.Time) tdf.Seconds {
	pause := firstPause
	if old := b[id]; old != nil {
		pause = max(old.pause, firstPause)
	}
	b[id] = &retry{after: now.Add(pause), pause: min(2*pause, lastPause), round: round}
	return pause
}

// notYet makes the task wait for the next round. If its callback fails later, the pauses begin with firstPause again.
func (b backoff) notYet(id int64, round int) { b[id] = &retry{round: round} }

// mustWait reports whether the task must still wait. It records that the task was seen in this round.
func (b backoff) mustWait(id int64, round int, now tdf.Time) bool {
	r := b[id]
	if r == nil {
		return false
	}
	again := r.round == round
	r.round = round
	return again || now < r.after && r.after <= now.Add(lastPause) // a later time means that Redis's clock was set back
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
func (b backoff) next() tdf.Time {
	next := tdf.Never
	for _, r := range b {
		if r.after > 0 {
			next = min(next, r.after)
		}
	}
	return next
}

// anyNotYet reports whether any of the tasks waits because its callback returned ErrNotYet.
func (b backoff) anyNotYet() bool {
	for _, r := range b {
		if r.after == 0 {
			return true
		}
	}
	return false
}
