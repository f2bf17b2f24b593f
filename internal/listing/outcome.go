package listing

import (
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
)

// Settled lists the states in which tasks wait for a manager, in the order in which a manager handles them.
var Settled = slices.DeleteFunc(slices.Clone(task.States), func(s task.State) bool { return !s.Settled() })

// Finished lists the states of finished tasks.
var Finished = append(slices.Clone(Settled), task.Archived)

// Outcome returns how a task ended, or "" if it has not ended. Components of the original TDF store no outcome. If they
// settled the task, Outcome returns the state of the task.
func Outcome(t *task.Task) string {
	if t.Outcome == "" && t.State.Settled() {
		return string(t.State)
	}
	return t.Outcome
}

// LastOutcome returns the same as Outcome. It also finds the outcome of an archived task that a component of the
// original TDF settled.
func LastOutcome(t *task.Task) string {
	for _, state := range Settled {
		if Outcome(t) == "" && t.Current().Entered[state] > 0 {
			return string(state)
		}
	}
	return Outcome(t)
}

// EndState returns the state in which a finished task ended.
func EndState(t *task.Task) task.State {
	if t.Outcome == task.Cancelled {
		return task.Expired
	}
	return task.State(LastOutcome(t))
}
