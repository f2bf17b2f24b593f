package rules

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/unixtime"
)

// LegacyTimeout and LegacyFailure are lists of the original TDF. Its server moved a task in two steps. Between the
// steps, the task's id was in one of these lists.
const (
	LegacyTimeout task.State = "timeout"
	LegacyFailure task.State = "failure"
)

// Placed is the list of the open tasks that have a place ([Properties.Place]). The list [Open] has the other open
// tasks.
const Placed task.State = "open:placed"

// Lists are all lists that may hold a task's id: one for each state, the two legacy lists, and the list Placed.
var Lists = slices.Clip(append(slices.Clone(task.States), LegacyTimeout, LegacyFailure, Placed))

// ListsOf returns the lists that hold the tasks in a state.
func ListsOf(s task.State) []task.State {
	if s == task.Open {
		return []task.State{task.Open, Placed}
	}
	return []task.State{s}
}

// A Placement is a task together with the lists that hold its id, as the audit read them.
type Placement struct {
	ID      int64
	Task    *task.Task   // nil if the task has no hash in Redis
	Invalid error        // the error of ParseTask if the task is open; otherwise nil
	Lists   []task.State // the lists that hold the id
	Scores  []task.Time  // the scores of the id in these lists, in the same order
	Group   string       // if Task is nil, a group that lists the id among its tasks; "" if no group is known
	Queue   string       // the same for a queue
	Unheard bool         // whether tasks wait for the task although it is finished or does not exist
}

// Score returns the id's score in the list of a state, or 0 if the list does not hold the id.
func (p Placement) Score(of task.State) task.Time {
	for _, list := range ListsOf(of) {
		if i := slices.Index(p.Lists, list); i >= 0 && i < len(p.Scores) {
			return p.Scores[i]
		}
	}
	return 0
}

// Repair returns the Move that makes an inconsistent task consistent at the time now. The Move's Note describes the
// inconsistency. Repair returns false if the task is consistent.
//
// A component of the original TDF moves tasks in several steps, so a task can be inconsistent for a moment. Callers
// must therefore see the same inconsistency twice, some time apart, before they carry out the repair
// (docs/guarantees.md, "The audit").
func (p Placement) Repair(now task.Time) (Move, bool) {
	if p.Task == nil {
		m := Move{
			ID: p.ID, Verb: VerbRepair, Repair: true, NextDue: noEarlierThan(task.Never), Group: p.Group,
			Queue: p.Queue,
		}
		m.Note = "an id without a task"
		if p.Group != "" {
			m.Note += ", in the index of group " + strconv.Quote(p.Group)
		}
		if p.Queue != "" {
			m.Note += ", in the index of queue " + strconv.Quote(p.Queue)
		}
		if p.Unheard {
			m.Note += ", for which tasks wait"
		}
		return m, len(p.Lists) > 0 || p.Group != "" || p.Queue != "" || p.Unheard
	}
	home := p.rightState()
	switch {
	case p.LeftByOriginalServer():
		return p.finishOriginalStep(), true
	case p.ArchivedByOriginal():
		return p.completeArchive(), true
	case home == task.Executed && !p.Task.Current().Committed:
		return p.returnOrLose("executed, but the round has no whole result", now), true
	case home == task.Running && p.neverEnds(now):
		return p.returnOrLose("running, but no worker has it", now), true
	case p.Task.State != home || !slices.Equal(p.Lists, []task.State{listIn(p.Task, home)}):
		return p.putBack(home, "out of place"), true
	case home == task.Open && p.Task.PlacedIn != p.Task.OpenPlace():
		return p.putBack(home, "its place contradicts its queue, priority or tags"), true
	}
	return Move{}, false
}

// listIn returns the list that holds the task in a state.
func listIn(t *task.Task, s task.State) task.State {
	if s == task.Open && t.OpenPlace() != "" {
		return Placed
	}
	return s
}

// rightState returns the state that the task should have. Usually this is the state in the task's hash. If a component
// of the original TDF stopped in the middle of a move, rightState derives the state from the outcome or from the lists.
func (p Placement) rightState() task.State {
	t := p.Task
	switch {
	case slices.Contains(p.Lists, task.Archived) && (t.Outcome != "" || t.State.Settled()):
		return task.Archived
	case t.Outcome == task.Cancelled && !t.State.Finished():
		return task.Expired
	case task.State(t.Outcome).Settled() && !t.State.Finished():
		return task.State(t.Outcome)
	case slices.Contains(task.States, t.State):
		return t.State
	}
	if known := slices.DeleteFunc(slices.Clone(p.Lists), isNoState); len(known) == 1 {
		return known[0]
	}
	return task.Open
}

func isLegacy(list task.State) bool { return list == LegacyTimeout || list == LegacyFailure }

func isNoState(list task.State) bool { return !slices.Contains(task.States, list) }

// neverEnds reports whether the current round of a running task would last forever, because no worker has the task.
func (p Placement) neverEnds(now task.Time) bool {
	r := p.Task.Current()
	if r.Claim != "" {
		return !slices.Contains(p.Lists, task.Running) && now >= p.Task.LeaseUntil
	}
	return r.Entered[task.Running] == 0 || !slices.Contains(p.Lists, task.Running)
}

// returnOrLose moves the task back to running if its worker's lease has not run out. Otherwise it ends the round as
// lost.
func (p Placement) returnOrLose(why string, now task.Time) Move {
	if r := p.Task.Current(); r.Claim != "" && now < p.Task.LeaseUntil {
		return p.putBack(task.Running, why)
	}
	m, _ := lose(p.Task, p.Task.State)
	m.Repair = true
	m.Note = why + ": " + m.Note
	return m
}

// putBack returns a repair that sets the state of the task to home. It also moves the task's id from all other lists to
// the list of that state.
func (p Placement) putBack(home task.State, why string) Move {
	t := p.Task
	m := Move{
		ID: t.ID, Verb: VerbRepair, From: t.State, Round: t.Round, To: home, Next: t.Round, Group: t.Group,
		Queue: t.Queue,
		Note:  "put back as " + string(home) + ": " + why, Repair: true, Limit: t.LimitKey,
	}
	at := *t
	at.State = home
	m.set(task.FieldState, string(home))
	m.NextDue = noEarlierThan(NextDue(&at, 0))
	entered := t.Current().Entered[home]
	m.Score = Moment{Min: entered, Max: entered}
	switch {
	case home == task.Open:
		ready := max(t.Ready, t.StartAfter, entered)
		m.Score = Moment{Min: ready, Max: ready}
		m.putInPlace(t)
	case home == task.Archived && t.Outcome == "":
		m.set(task.FieldOutcome, string(t.State))
	case home.Settled() && t.Outcome == "":
		m.set(task.FieldOutcome, string(home))
	}
	return m
}

// putInPlace writes the place of an open task, which may be missing or invalid.
func (m *Move) putInPlace(t *task.Task) {
	if place := t.OpenPlace(); place != "" {
		m.set(task.FieldPlace, place)
	} else if t.PlacedIn != "" {
		m.Clear = append(m.Clear, task.FieldPlace)
	}
}

// LeftByOriginalServer reports whether the server of the original TDF made only the first of two steps of a move. The
// server of the original TDF must not run beside a server of this project, so it will not make the second step. Callers
// may therefore repair the task at once.
func (p Placement) LeftByOriginalServer() bool {
	return len(p.Lists) == 1 && isLegacy(p.Lists[0])
}

// ArchivedByOriginal reports whether a manager of the original TDF archived the task. That manager moves the id to the
// list archived, but the task's hash keeps the state in which the task ended. The task counts as consistent.
func (p Placement) ArchivedByOriginal() bool {
	return p.Task != nil && len(p.Lists) == 1 && p.Lists[0] == task.Archived && p.Task.State.Settled()
}

// completeArchive returns a repair for a task that a manager of the original TDF archived. The repair sets the state
// and the outcome, because that manager sets neither. The id keeps its score in the list archived.
func (p Placement) completeArchive() Move {
	t := p.Task
	m, _ := Archive(t)
	m.Repair = true
	m.Note = "archived by a manager of the original TDF"
	if t.Outcome == "" {
		m.set(task.FieldOutcome, string(t.State))
	}
	if at := p.Score(task.Archived); unixtime.Valid(float64(at)) && at > 0 && at < task.Never {
		m.Score = momentAt(at)
		for i := range m.Stamp {
			m.Stamp[i].At = m.Score
		}
	}
	return m
}

// finishOriginalStep makes the second step of a move that the original TDF's server began. The current round of the
// task has timed out or failed. The second step reopens the task or ends it.
func (p Placement) finishOriginalStep() Move {
	t := *p.Task
	// the original server had already raised the counter
	counted := t.Fails+t.Timeouts+t.Losses+t.Releases+t.Reopens > t.Round
	var m Move
	if p.Lists[0] == LegacyTimeout {
		t.State = task.Running
		if counted {
			t.Timeouts = max(0, t.Timeouts-1)
		}
		m, _ = TimeOut(&t)
	} else {
		t.State = task.Executed
		if counted {
			t.Fails = max(0, t.Fails-1)
		}
		m, _ = fail(&t)
	}
	m.From = p.Task.State
	m.Repair = true
	return m
}

// Reindex returns a Move that writes the task's id into $ns:due and into the group's index again. The task keeps its
// state.
func (p Placement) Reindex(why string) Move { return p.putBack(p.Task.State, why) }

// CounterMismatch describes how the task's counters contradict its round number. It returns "" if they do not.
//
// Each round before the current one raised one counter, so the counters add up to at least the round number. They may
// add up to more, because the end of a task raises a counter without a new round. If a user reopens the task, this
// counter keeps its value (docs/lifecycle.md, "Rounds").
func CounterMismatch(t *task.Task) string {
	excess := t.Fails + t.Timeouts + t.Losses + t.Releases + t.Reopens - t.Round
	allowed := t.Reopens
	if t.State.Finished() {
		allowed++
	}
	if excess < 0 || excess > allowed {
		return fmt.Sprintf("it is in round %d, but its counters add up to %d", t.Round, t.Round+excess)
	}
	return ""
}
