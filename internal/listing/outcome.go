package listing

import (
	"slices"

	"github.com/tdf-framework/tdf"
)

// Settled are the states in which tasks wait for a manager, in the order in which a manager takes them.
var Settled = slices.DeleteFunc(slices.Clone(tdf.States), func(s tdf.State) bool { return !s.Settled() })

// Finished are the states of finished tasks.
var Finished = append(slices.Clone(Settled), tdf.Archived)

// Outcome returns how a task ended; "" before its end. A component of the original TDF writes no outcome, and the state tells it.
func Outcome(t *tdf.Task) string {
	if t.Outcome == "" && t.State.Settled() {
		return string(t.State)
	}
	return t.Outcome
}

// LastOutcome is Outcome also for a task that a component of the original TDF settled and that is archived.
func LastOutcome(t *tdf.Task) string {
	for _, state := range Settled {
		if Outcome(t) == "" && t.Current().Entered[state] > 0 {
			return string(state)
		}
	}
	return Outcome(t)
}

// EndState returns the state that a finished task's outcome belongs to.
func EndState(t *tdf.Task) tdf.State {
	if t.Outcome == tdf.Cancelled {
		return tdf.Expired
	}
	return tdf.State(LastOutcome(t))
}
