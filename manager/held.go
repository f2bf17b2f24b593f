package manager

import (
	"github.com/tdf-framework/tdf"
)

// Pauses before a callback that failed is called again.
const (
	firstPause = tdf.Seconds(1)
	lastPause  = tdf.Seconds(5 * 60)
)

// held are the tasks whose callbacks did not let them go, by id. It is kept in memory: a
// manager that starts anew begins with all callbacks at once.
type held map[int64]*hold

type hold struct {
	until tdf.Time    // its callback is not called before; 0: in any round after this one
	pause tdf.Seconds // the next one, if it fails again
	round int         // of the run, in which it was last met
}

// fail has the task wait for its next pause, and returns that.
func (h held) fail(id int64, round int, now tdf.Time) tdf.Seconds {
	pause := firstPause
	if old := h[id]; old != nil {
		pause = max(old.pause, firstPause)
	}
	h[id] = &hold{until: now.Add(pause), pause: min(2*pause, lastPause), round: round}
	return pause
}

// notYet has the task wait for the next round. The pauses begin anew if it fails after that.
func (h held) notYet(id int64, round int) { h[id] = &hold{round: round} }

// meets reports whether the task, met in this round, still has to wait.
func (h held) meets(id int64, round int, now tdf.Time) bool {
	hold := h[id]
	if hold == nil {
		return false
	}
	again := hold.round == round
	hold.round = round
	return again || now < hold.until
}

// forget drops those that were not met in this round: they are somewhere else now.
func (h held) forget(round int) {
	for id, hold := range h {
		if hold.round != round {
			delete(h, id)
		}
	}
}

// next returns the earliest end of a pause; Never if there is none.
func (h held) next() tdf.Time {
	next := tdf.Never
	for _, hold := range h {
		if hold.until > 0 {
			next = min(next, hold.until)
		}
	}
	return next
}

// waiting reports whether a task waits for others.
func (h held) waiting() bool {
	for _, hold := range h {
		if hold.until == 0 {
			return true
		}
	}
	return false
}
