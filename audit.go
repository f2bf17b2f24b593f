package tdf

import (
	"fmt"
	"slices"
	"strconv"
)

// The lists of the original TDF in which its server kept tasks between two steps.
const (
	LegacyTimeout State = "timeout"
	LegacyFailure State = "failure"
)

// Lists are all lists that may hold a task's id: one for each state, and the two of the
// original TDF.
var Lists = append(slices.Clone(States), LegacyTimeout, LegacyFailure)

// A Placement is a task as it was found, together with the lists that hold its id.
type Placement struct {
	ID      int64
	Task    *Task // nil: there is no hash
	Invalid error // what makes no sense about an open task
	Lists   []State
	Scores  []Time // in each of the lists
	Group   string // a group whose index holds the id, where there is no hash; "": none is known
}

// Score returns the score that the id has in a list; 0: it is not there.
func (p Placement) Score(list State) Time {
	if i := slices.Index(p.Lists, list); i >= 0 && i < len(p.Scores) {
		return p.Scores[i]
	}
	return 0
}

// VerbRepair is the verb of a repair. It is no transition: it makes a task whole again that
// somebody else left between two.
const VerbRepair Verb = "repair"

// Repair says what is wrong with a task and how it is put right, at the time now; false means
// that nothing is wrong. What is wrong may be somebody's move that is under way, so a
// caller mends only what it has seen wrong twice, some time apart and unchanged
// (docs/guarantees.md, "The audit").
func (p Placement) Repair(now Time) (Move, bool) {
	if p.Task == nil {
		m := Move{ID: p.ID, Verb: VerbRepair, Repair: true, NextDue: noEarlierThan(Never), Group: p.Group}
		m.Note = "an id without a task"
		if p.Group != "" {
			m.Note += ", in the index of group " + strconv.Quote(p.Group)
		}
		return m, len(p.Lists) > 0 || p.Group != ""
	}
	home := p.rightState()
	switch {
	case p.LeftByOriginalServer():
		return p.finishOriginalStep(), true
	case p.ArchivedByOriginal():
		return p.completeArchive(), true
	case home == Executed && !p.Task.Current().Committed:
		return p.returnOrLose("executed, but the round has no whole result", now), true
	case home == Running && p.neverEnds(now):
		return p.returnOrLose("running, but no worker has it", now), true
	case p.Task.State != home || !slices.Equal(p.Lists, []State{home}):
		return p.putBack(home, "out of place"), true
	}
	return Move{}, false
}

// home returns the state that the task should have: the one that its hash names, but for
// what the original TDF left half-way.
func (p Placement) rightState() State {
	t := p.Task
	switch {
	case slices.Contains(p.Lists, Archived) && (t.Outcome != "" || t.State.Settled()):
		return Archived
	case t.Outcome == Cancelled && !t.State.Finished():
		return Expired
	case State(t.Outcome).Settled() && !t.State.Finished():
		return State(t.Outcome)
	case slices.Contains(States, t.State):
		return t.State
	}
	if known := slices.DeleteFunc(slices.Clone(p.Lists), isLegacy); len(known) == 1 {
		return known[0]
	}
	return Open
}

func isLegacy(list State) bool { return list == LegacyTimeout || list == LegacyFailure }

// abandoned: a running round that nothing will ever bring to an end.
func (p Placement) neverEnds(now Time) bool {
	r := p.Task.Current()
	if r.Claim != "" {
		return !slices.Contains(p.Lists, Running) && now >= p.Task.LeaseUntil
	}
	return r.Entered[Running] == 0 || !slices.Contains(p.Lists, Running)
}

// incomplete gives a round back to its worker while the worker's lease lives; else it is lost.
func (p Placement) returnOrLose(why string, now Time) Move {
	if r := p.Task.Current(); r.Claim != "" && now < p.Task.LeaseUntil {
		return p.putBack(Running, why)
	}
	m, _ := p.Task.lose(p.Task.State)
	m.Repair = true
	m.Note = why + ": " + m.Note
	return m
}

// putBack puts the task into the one list where it belongs.
func (p Placement) putBack(home State, why string) Move {
	t := p.Task
	m := Move{
		ID: t.ID, Verb: VerbRepair, From: t.State, Round: t.Round, To: home, Next: t.Round, Group: t.Group,
		Note: "put back as " + string(home) + ": " + why, Repair: true,
	}
	at := *t
	at.State = home
	m.set(fieldState, string(home))
	m.NextDue = noEarlierThan(at.NextDue(0))
	entered := t.Current().Entered[home]
	m.Score = Moment{Min: entered, Max: entered}
	switch {
	case home == Open:
		ready := max(t.Ready, t.StartAfter, entered)
		m.Score = Moment{Min: ready, Max: ready}
	case home == Archived && t.Outcome == "":
		m.set(fieldOutcome, string(t.State))
	case home.Settled() && t.Outcome == "":
		m.set(fieldOutcome, string(home))
	}
	return m
}

// LeftByOriginalServer reports whether the task was left by the original TDF's server between two steps.
// That server must not run beside ours, so nobody will take the second step: it is mended at once.
func (p Placement) LeftByOriginalServer() bool {
	return len(p.Lists) == 1 && isLegacy(p.Lists[0])
}

// ArchivedByOriginal reports whether a manager of the original TDF archived the task: the id is in
// archived, and the hash keeps the state in which the task ended. That is no inconsistency.
func (p Placement) ArchivedByOriginal() bool {
	return p.Task != nil && len(p.Lists) == 1 && p.Lists[0] == Archived && p.Task.State.Settled()
}

// complete writes into the hash of such a task what a manager of this project writes when it
// archives: the state archived, and the outcome. The id keeps its score.
func (p Placement) completeArchive() Move {
	t := p.Task
	m, _ := t.Archive()
	m.Repair = true
	m.Note = "archived by a manager of the original TDF"
	if t.Outcome == "" {
		m.set(fieldOutcome, string(t.State))
	}
	if at := p.Score(Archived); validSeconds(float64(at)) && at > 0 && at < Never {
		m.Score = exactly(at)
		for i := range m.Stamp {
			m.Stamp[i].At = m.Score
		}
	}
	return m
}

// finishStep makes the step that the original TDF's server did not get to: the round has timed
// out or failed, and the task is open again or ends.
func (p Placement) finishOriginalStep() Move {
	t := *p.Task
	counted := t.Fails+t.Timeouts+t.Losses+t.Releases+t.Reopens > t.Round // it stopped after it had counted
	var m Move
	if p.Lists[0] == LegacyTimeout {
		t.State = Running
		if counted {
			t.Timeouts = max(0, t.Timeouts-1)
		}
		m, _ = t.TimeOut()
	} else {
		t.State = Executed
		if counted {
			t.Fails = max(0, t.Fails-1)
		}
		m, _ = t.fail()
	}
	m.From = p.Task.State
	m.Repair = true
	return m
}

// Reindex writes the task's places in what is derived from it anew.
func (p Placement) Reindex(why string) Move { return p.putBack(p.Task.State, why) }

// CounterMismatch says how a task's counters and its round contradict each other; "" if they do
// not. Each round but the current one ended in one count; an ending that was final was
// counted without a new round, and stays counted when the task is opened again.
func (t *Task) CounterMismatch() string {
	more := t.Fails + t.Timeouts + t.Losses + t.Releases + t.Reopens - t.Round
	most := t.Reopens
	if t.State.Finished() {
		most++
	}
	if more < 0 || more > most {
		return fmt.Sprintf("it is in round %d, but its counters add up to %d", t.Round, t.Round+more)
	}
	return ""
}
