package task

import (
	"fmt"
	"strconv"
)

// keep returns how long Redis keeps the task after it has entered its present state. It is Forever if the task is not
// finished.
func (t *Task) keep() Seconds {
	switch {
	case t.State == Archived:
		return t.KeepArchived
	case t.State.Settled():
		return t.KeepFinished
	}
	return Forever
}

// removeAt returns the time at which the server removes the finished task, or Never (docs/lifecycle.md, "Retention").
func (t *Task) removeAt() Time {
	entered := t.Current().Entered[t.State]
	if entered == 0 {
		return Never // the time is missing: a component of the original TDF moved the task
	}
	return entered.Add(t.keep())
}

// EndedAt returns when the task finished, or 0 if this is unknown. Archiving does not change it.
func (t *Task) EndedAt() Time {
	r := t.Current()
	switch {
	case t.State.Settled():
		return r.Entered[t.State]
	case t.Outcome == Cancelled:
		return r.Entered[Expired]
	case State(t.Outcome).Settled():
		return r.Entered[State(t.Outcome)]
	}
	return 0
}

// removeOutputsAt returns the time at which the server removes the outputs of the finished task. It returns Never if
// they are already removed, or have no limit.
func (t *Task) removeOutputsAt() Time {
	finished := t.EndedAt()
	if t.OutputsFrom > t.Round || finished == 0 {
		return Never
	}
	return finished.Add(t.KeepOutputs)
}

// nextRemoval returns the time at which the server next removes the finished task or its outputs.
func (t *Task) nextRemoval() Time { return min(t.removeAt(), t.removeOutputsAt()) }

// keepFrom returns when the server must next remove the task or its outputs, for a Move that leads to the finished
// state to.
func (t *Task) keepFrom(to State) Moment {
	at := *t
	at.State = to
	if to != Archived {
		return in(min(at.keep(), at.KeepOutputs))
	}
	outputs := t.removeOutputsAt()
	switch {
	case outputs == Never:
		return in(at.keep())
	case at.keep() == Forever:
		return noEarlierThan(outputs)
	}
	return Moment{After: at.keep(), Max: outputs}
}

// roundsAtOnce is the largest number of rounds whose outputs one Move removes.
const roundsAtOnce = 100

// removeOutputs returns a Move that removes what the program has written, in the first rounds that still have it. The
// last of these Moves also removes the checkpoint and the updates.
func (t *Task) removeOutputs() Move {
	next := *t
	next.OutputsFrom = min(t.OutputsFrom+roundsAtOnce, t.Round+1)
	m := Move{
		ID: t.ID, Verb: VerbRemoveOutputs, From: t.State, Round: t.Round, Next: t.Round,
		NextDue: noEarlierThan(next.nextRemoval()), Note: fmt.Sprintf("outputs removed (%s)", fieldKeepOutputs),
	}
	m.set(fieldOutputsFrom, strconv.Itoa(next.OutputsFrom))
	m.Stamp = append(m.Stamp, Stamp{fieldOutputsGone, Now})
	for n := t.OutputsFrom; n < next.OutputsFrom; n++ {
		for _, name := range []string{RoundOutput, RoundError, roundResult, RoundFiles, RoundTail, RoundTailEnd} {
			m.Clear = append(m.Clear, RoundField(n, name))
		}
	}
	if next.OutputsFrom > t.Round {
		m.Clear = append(m.Clear, FieldCheckpoint)
		m.Updates = true
	}
	return m
}

// leastSeconds is the smallest number of seconds above 0 that TDF can write to Redis. A smaller number may become 0.
const leastSeconds = Seconds(1e-6)
