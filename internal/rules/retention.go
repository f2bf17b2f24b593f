package rules

import (
	"fmt"
	"strconv"

	"github.com/tdf-framework/tdf/internal/task"
)

// keep returns how long Redis keeps the task after it has entered its present state. It is Forever if the task is not
// finished.
func keep(t *task.Task) task.Seconds {
	switch {
	case t.State == task.Archived:
		return t.KeepArchived
	case t.State.Settled():
		return t.KeepFinished
	}
	return task.Forever
}

// removeAt returns the time at which the server removes the finished task, or Never (docs/lifecycle.md, "Retention").
func removeAt(t *task.Task) task.Time {
	entered := t.Current().Entered[t.State]
	if entered == 0 {
		return task.Never // the time is missing: a component of the original TDF moved the task
	}
	return entered.Add(keep(t))
}

// removeOutputsAt returns the time at which the server removes the outputs of the finished task. It returns Never if
// they are already removed, or have no limit.
func removeOutputsAt(t *task.Task) task.Time {
	finished := t.EndedAt()
	if t.OutputsFrom > t.Round || finished == 0 {
		return task.Never
	}
	return finished.Add(t.KeepOutputs)
}

// nextRemoval returns the time at which the server next removes the finished task or its outputs.
func nextRemoval(t *task.Task) task.Time { return min(removeAt(t), removeOutputsAt(t)) }

// keepFrom returns when the server must next remove the task or its outputs, for a Move that leads to the finished
// state to.
func keepFrom(t *task.Task, to task.State) Moment {
	at := *t
	at.State = to
	if to != task.Archived {
		return in(min(keep(&at), at.KeepOutputs))
	}
	outputs := removeOutputsAt(t)
	switch {
	case outputs == task.Never:
		return in(keep(&at))
	case keep(&at) == task.Forever:
		return noEarlierThan(outputs)
	}
	return Moment{After: keep(&at), Max: outputs}
}

// roundsAtOnce is the largest number of rounds whose outputs one Move removes.
const roundsAtOnce = 100

// removeOutputs returns a Move that removes what the program has written, in the first rounds that still have it. The
// last of these Moves also removes the checkpoint and the updates.
func removeOutputs(t *task.Task) Move {
	next := *t
	next.OutputsFrom = min(t.OutputsFrom+roundsAtOnce, t.Round+1)
	m := Move{
		ID: t.ID, Verb: VerbRemoveOutputs, From: t.State, Round: t.Round, Next: t.Round,
		NextDue: noEarlierThan(nextRemoval(&next)), Note: fmt.Sprintf("outputs removed (%s)", task.FieldKeepOutputs),
	}
	m.set(task.FieldOutputsFrom, strconv.Itoa(next.OutputsFrom))
	m.Stamp = append(m.Stamp, Stamp{task.FieldOutputsGone, Now})
	for n := t.OutputsFrom; n < next.OutputsFrom; n++ {
		for _, name := range []string{
			task.RoundOutput, task.RoundError, task.RoundResult, task.RoundFiles, task.RoundTail, task.RoundTailEnd,
		} {
			m.Clear = append(m.Clear, task.RoundField(n, name))
		}
	}
	if next.OutputsFrom > t.Round {
		m.Clear = append(m.Clear, task.FieldCheckpoint)
		m.Updates = true
	}
	return m
}
