package manager

import (
	"github.com/tdf-framework/tdf"
)

// The pauses before a failed callback is called again.
const (
	firstPause = tdf.Seconds(1)
	lastPause  = tdf.Seconds(5 * 60)
)

// backoff has the tasks whose callbacks have to be called again, by id. It is only in memory, so a restarted manager calls
// all callbacks at once.
type backoff map[int64]*retry

type retry struct {
	after tdf.Time    // its callback is not called earlier; 0: in the next round
	pause tdf.Seconds // the next pause, if the callback fails again
	round int         // the round of Run in which the task was last seen
}

// failed makes the task wait for its next pause, and returns the pause.
func (b backoff) failed(id int64, round int, now tdf.Time) tdf.Seconds {
	pause := firstPause
	if old := b[id]; old != nil {
		pause = max(old.pause, firstPause)
	}
	b[id] = &retry{after: now.Add(pause), pause: min(2*pause, lastPause), round: round}
	return pause
}

// notYet makes the task wait for the next round, and resets its pauses.
func (b backoff) notYet(id int64, round int) { b[id] = &retry{round: round} }

// waits reports whether the task has to wait, and remembers that it was seen in this round.
func (b backoff) waits(id int64, round int, now tdf.Time) bool {
	r := b[id]
	if r == nil {
		return false
	}
	again := r.round == round
	r.round = round
	return again || now < r.after
}

// forget drops the tasks that were not seen in this round, because they have changed their states.
func (b backoff) forget(round int) {
	for id, r := range b {
		if r.round != round {
			delete(b, id)
		}
	}
}

// next returns the earliest end of a pause; Never if there is none.
func (b backoff) next() tdf.Time {
	next := tdf.Never
	for _, r := range b {
		if r.after > 0 {
			next = min(next, r.after)
		}
	}
	return next
}

// anyNotYet reports whether a callback has returned ErrNotYet.
func (b backoff) anyNotYet() bool {
	for _, r := range b {
		if r.after == 0 {
			return true
		}
	}
	return false
}
