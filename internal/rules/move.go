package rules

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Move is one change of one task, with everything that it writes: a transition, or one of the [Upkeeps]. The rules
// return Moves, and the package redisstate carries them out. Redis carries out a Move only if two conditions hold: the
// task is still in the state From and the round Round, and the Move's fences hold. Otherwise nothing changes.
type Move struct {
	ID    int64
	Verb  Verb
	From  task.State
	Round int
	To    task.State // None if the Move deletes the task
	Next  int        // the round after the Move: Round or Round + 1

	Claim string // fence: the claim that the round must have, or NoClaim; "" if the claim is not checked
	Due   string // fence: the score that the task must have in $ns:due, or NotDue; "" if the score is not checked

	Revision string // fence: the revision that the task must have; "" if the revision is not checked

	Set     []task.Field // properties to write
	Stamp   []Stamp      // properties that get a time, which Redis computes
	Clear   []string     // properties to delete
	Updates bool         // whether the Move deletes the task's updates, and Redis then stores the task in less memory
	// the unique key that the task takes when it is reopened, or gives back when it is removed; "" if there is none
	Unique  string
	Limit   string // the limit key of the task, if the Move leaves or enters the state running; otherwise ""
	Group   string // the group of the task; Redis also updates the group's index
	Queue   string // the queue of the task; "" if it has none
	Score   Moment // the score in the new list
	NextDue Moment // when the server must check the task next
	Note    string // the line for the task's log

	// What is counted of the Move (docs/metrics.md). The time Opened is that of the opening of a task that the Move
	// ends, and Ended is the time of its end; 0 if unknown.
	Ran           task.Seconds // the run time of the round's program; 0 if the Move reports none
	Opened, Ended task.Time

	// Settles means that the Move stores the result of a round and settles it, too: see [Move.Settled].
	Settles bool

	Repair bool // whether the Move is a repair, which also removes the id from all lists except the new one
}

// Ends reports whether the Move ends the task, so that only a user can reopen it. A repair may put back a task whose
// end is known to nobody.
func (m *Move) Ends() bool { return m.To.Settled() || m.Repair && m.To.Finished() }

// Removes reports whether the Move removes the task.
func (m *Move) Removes() bool { return m.Verb == VerbRemove || m.Verb == VerbReplace }

// Spoils reports whether the Move removes the task or its outputs.
func (m *Move) Spoils() bool { return m.Removes() || m.Verb == VerbRemoveOutputs }

// NoClaim is the value of Move.Claim that requires a round without a claim. A round has no claim if no worker ran it,
// or if a worker of the original TDF ran it.
const NoClaim = "-"

// NotDue is the value of Move.Due that requires a task that is not in $ns:due.
const NotDue = "-1"

// DueAt returns the value of Move.Due that requires a score, without rounding.
func DueAt(score float64) string {
	if math.IsInf(score, 0) {
		return ""
	}
	return strconv.FormatFloat(score, 'f', -1, 64)
}

// A Stamp is a property whose value is a time. Redis computes this time when it carries out the Move.
type Stamp struct {
	Name string
	At   Moment
}

// A Moment is a time that Redis computes when it carries out a Move: the current time plus After. The result is at
// least Min. If Max is not 0, the result is at most Max.
type Moment struct {
	After    task.Seconds
	Min, Max task.Time
}

// Now is the time at which Redis carries out the Move.
var Now = Moment{}

// noEarlierThan returns a Moment: the time of the Move, but at least t.
func noEarlierThan(t task.Time) Moment { return Moment{Min: t} }

// in returns the Moment that is a span after the time of the Move. If the span is Forever, it returns the Moment Never.
func in(s task.Seconds) Moment {
	if s == task.Forever {
		return noEarlierThan(task.Never)
	}
	return Moment{After: s}
}

// move returns a Move for the row (v, t.State, to) of [Transitions]. It returns a *StateError if there is no such row.
func move(t *task.Task, v Verb, to task.State) (Move, error) {
	tr, ok := findTransition(v, t.State, to)
	if !ok {
		return Move{}, &StateError{ID: t.ID, Verb: v, State: t.State, Round: t.Round}
	}
	m := Move{
		ID: t.ID, Verb: v, From: t.State, Round: t.Round, To: to, Next: t.Round,
		Group: t.Group, Queue: t.Queue, NextDue: noEarlierThan(task.Never), Note: string(to),
	}
	if t.State == task.Running || to == task.Running {
		m.Limit = t.LimitKey
	}
	if to == task.None {
		return m, nil
	}
	if to.Settled() && to != task.Succeeded {
		m.Opened = t.Opened()
	}
	m.Set = make([]task.Field, 0, 8) // a worker's report has six to nine
	m.set(task.FieldState, string(to))
	if tr.Counts != "" {
		m.set(string(tr.Counts), fmt.Sprint(counter(t, tr.Counts)+1))
	}
	if tr.NewRound {
		m.Next++
		m.set(task.FieldRound, fmt.Sprint(m.Next))
	}
	if v != VerbChange && v != VerbRescore && v != VerbUnblock && v != VerbUnclaim {
		m.Stamp = append(m.Stamp, Stamp{task.RoundField(m.Next, string(to)), Now})
	}
	switch {
	case to == task.Open:
		m.Score = Moment{Min: t.StartAfter}
		m.NextDue = noEarlierThan(t.OpenUntil())
	case to == task.Executed:
		m.NextDue = Now
	case to.Settled():
		m.set(task.FieldOutcome, outcomeOf(v, to))
	}
	if to.Finished() {
		m.NextDue = keepFrom(t, to)
	}
	return m, nil
}

func outcomeOf(v Verb, to task.State) string {
	if v == VerbCancel {
		return task.Cancelled
	}
	return string(to)
}

func (m *Move) set(name, value string) { m.Set = append(m.Set, task.Field{Name: name, Value: value}) }

func (m *Move) setRound(name, value string) { m.set(task.RoundField(m.Round, name), value) }

func (m *Move) stamp(name string, at Moment) {
	m.Stamp = append(m.Stamp, Stamp{task.RoundField(m.Round, name), at})
}

func counter(t *task.Task, c task.Counter) int {
	switch c {
	case task.Fails:
		return t.Fails
	case task.Timeouts:
		return t.Timeouts
	case task.Losses:
		return t.Losses
	case task.Releases:
		return t.Releases
	case task.Reopens:
		return t.Reopens
	default:
		return t.Revision
	}
}

// PutOff returns a Move that makes the task of this Move due later. The server uses it if Redis refuses this Move
// because unfinished tasks need the task, or because Redis does not know yet whether they do.
func (m *Move) PutOff(known bool) Move {
	pause := unlinkedPause
	if known {
		pause = neededPause
	}
	return Move{
		ID: m.ID, Verb: VerbReschedule, From: m.From, Round: m.Round, Next: m.Round, Due: m.Due,
		NextDue: Moment{After: pause},
	}
}

// Reschedule returns a Move that makes the task due at the given time.
func Reschedule(t *task.Task, at task.Time) Move {
	return Move{
		ID: t.ID, Verb: VerbReschedule, From: t.State, Round: t.Round, Next: t.Round,
		NextDue: noEarlierThan(at),
	}
}

// Require returns a Move that changes nothing, and that requires the task to be unchanged since it was read.
func Require(t *task.Task) Move {
	m := Move{ID: t.ID, Verb: VerbRequire, From: t.State, Round: t.Round, To: t.State, Next: t.Round}
	m.Claim = cmp.Or(t.Current().Claim, NoClaim)
	return m.IfUnchanged(t)
}

// IfUnchanged returns the Move with a fence: the task must still have the revision of t. Together with the state and
// the round, the revision identifies one version of a task. Leases and reports of a running program make no new
// version.
func (m Move) IfUnchanged(t *task.Task) Move {
	m.Revision = strconv.Itoa(t.Revision)
	return m
}

// NamedProgram returns the SHA-256 of the stored program that the Move writes into its task, or "".
func (m *Move) NamedProgram() string {
	if m.Verb != VerbChange && m.Verb != VerbReopen {
		return ""
	}
	for _, f := range m.Set {
		if f.Name == task.FieldSource {
			return task.StoredProgram(f.Value)
		}
	}
	return ""
}

// Schedule returns a new task's score in the open list, and the time at which the task is due.
func Schedule(d *task.Properties) (score, due Moment) {
	return Moment{Min: d.StartAfter}, noEarlierThan(d.OpenUntil())
}
