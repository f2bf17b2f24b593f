package tdf

import "fmt"

// A Move is a transition of one task as the rules decided it: from where, to where, and
// what is to be written. It is carried out only if the task is still in that state and
// round, and the fences given hold; otherwise nothing changes.
type Move struct {
	ID    int64
	Verb  Verb
	From  State
	Round int
	To    State // None, and the verb remove: nowhere, with all that there is of the task
	Next  int   // the task's round afterwards: Round, or the one after it

	Claim string // fence: the claim that the round must belong to, or NoClaim; "": any
	Due   string // fence: the score that the task must have among the due ones; "": whichever

	Set     []Field // properties to write
	Stamp   []Stamp // properties to write the moment into
	Clear   []string
	Group   string // the group of the task, for its index
	Score   Moment // in the list it goes to
	NextDue Moment // when the server must look at the task next
	Note    string // for the log

	Repair bool // not a transition but a repair: the id is taken out of every other list
}

// NoClaim is the fence of a round that must not have a claim: a worker of the original TDF ran it, or none.
const NoClaim = "-"

// A Field is a property and its value.
type Field struct{ Name, Value string }

// A Stamp is a property that gets a moment.
type Stamp struct {
	Name string
	At   Moment
}

// A Moment is a time that only Redis can tell: After seconds from when the move is made,
// but not before Min, and not after Max where that is not 0.
type Moment struct {
	After    Seconds
	Min, Max Time
}

// Now is the moment of the move itself.
var Now = Moment{}

// until returns the moment t, or the move's if that is later; for Never, never.
func noEarlierThan(t Time) Moment { return Moment{Min: t} }

// move starts a Move along the row (v, to) of the table, or says that the task is not where
// that row begins.
func (t *Task) move(v Verb, to State) (Move, error) {
	tr, ok := findTransition(v, t.State, to)
	if !ok {
		return Move{}, &StateError{ID: t.ID, Verb: v, State: t.State, Round: t.Round}
	}
	m := Move{
		ID: t.ID, Verb: v, From: t.State, Round: t.Round, To: to, Next: t.Round,
		Group: t.Group, NextDue: noEarlierThan(Never), Note: string(to),
	}
	if to == None {
		return m, nil
	}
	m.set(fieldState, string(to))
	if tr.Counts != "" {
		m.set(string(tr.Counts), fmt.Sprint(t.counter(tr.Counts)+1))
	}
	if tr.NewRound {
		m.Next++
		m.set(fieldRound, fmt.Sprint(m.Next))
	}
	if v != VerbChange && v != VerbRescore {
		m.Stamp = append(m.Stamp, Stamp{RoundField(m.Next, string(to)), Now})
	}
	switch {
	case to == Open:
		m.Score = Moment{Min: t.StartAfter}
		m.NextDue = noEarlierThan(t.EndBefore)
	case to == Executed:
		m.NextDue = Now
	case to.Settled():
		m.set(fieldOutcome, outcomeOf(v, to))
	}
	return m, nil
}

func outcomeOf(v Verb, to State) string {
	if v == VerbCancel {
		return Cancelled
	}
	return string(to)
}

func (m *Move) set(name, value string) { m.Set = append(m.Set, Field{name, value}) }

func (m *Move) setRound(name, value string) { m.set(RoundField(m.Round, name), value) }

func (m *Move) stamp(name string, at Moment) {
	m.Stamp = append(m.Stamp, Stamp{RoundField(m.Round, name), at})
}

func (t *Task) counter(c Counter) int {
	switch c {
	case Fails:
		return t.Fails
	case Timeouts:
		return t.Timeouts
	case Losses:
		return t.Losses
	case Releases:
		return t.Releases
	case Reopens:
		return t.Reopens
	default:
		return t.Revision
	}
}

// VerbReschedule is the verb of a move that moves nothing: the server has looked, and says when
// it wants to look again.
const VerbReschedule Verb = "look"

// Reschedule has the server look at the task at the time given.
func (t *Task) Reschedule(at Time) Move {
	return Move{ID: t.ID, Verb: VerbReschedule, From: t.State, Round: t.Round, Next: t.Round, NextDue: noEarlierThan(at)}
}
