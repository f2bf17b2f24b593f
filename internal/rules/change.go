package rules

import (
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// ErrUnchanged means that the task already has all the values of a change.
var ErrUnchanged = task.NewError(task.CodeConflict, "it already has these values")

// Change returns a Move that changes properties of an open task. The task keeps its round. If start_after does not
// change, the task also keeps its place in the queue. The error is a *[StateError] if the task is not open, a
// *[task.PropertyError] if the changed task would be invalid, or [ErrUnchanged].
func Change(t *task.Task, c task.Changes) (Move, error) {
	m, err := move(t, VerbChange, task.Open)
	if err != nil {
		return m, err
	}
	changed, err := m.applyChanges(t, c)
	if err == nil && len(changed) == 0 {
		err = ErrUnchanged
	}
	m.Note = "changed: " + strings.Join(changed, ", ")
	return m, err
}

// ReopenWith returns a Move that reopens a finished task and changes its properties. The error is an error of
// [Reopen], or a *[task.PropertyError] if the changed task would be invalid.
func ReopenWith(t *task.Task, c task.Changes) (Move, error) {
	m, err := reopen(t)
	if err != nil {
		return m, err
	}
	changed, err := m.applyChanges(t, c)
	if len(changed) > 0 {
		m.Note += ", changed: " + strings.Join(changed, ", ")
	}
	return m, err
}

// applyChanges adds the changes to a Move whose new state is open. It returns the names of the changed properties.
func (m *Move) applyChanges(t *task.Task, c task.Changes) (changed []string, err error) {
	d := c.Apply(t.Properties)
	if err := d.Validate(); err != nil {
		return nil, err
	}
	before, after := withoutPlace(t.OpenFields("")), withoutPlace(d.OpenFields(""))
	for _, f := range after {
		if !slices.Contains(before, f) {
			m.Set = append(m.Set, f)
			changed = append(changed, f.Name)
		}
	}
	for _, f := range before {
		if !slices.ContainsFunc(after, func(g task.Field) bool { return g.Name == f.Name }) {
			m.Clear = append(m.Clear, f.Name) // a property with its default value is not stored
			changed = append(changed, f.Name)
		}
	}
	m.markInput(t, c)
	m.NextDue = noEarlierThan(d.OpenUntil())
	m.Score = Moment{Min: d.StartAfter}
	if m.Verb != VerbChange {
		m.startOver(t, &d)
		return changed, nil
	}
	// the task stays there, or returns there if it has just left; the server links it again
	if t.PlacedIn == task.WaitingPlace {
		m.set(task.FieldPlace, t.PlacedIn)
	} else { // it may have moved since it was read; if it may still not start, a claim holds it again
		m.putIn(d.Place())
	}
	m.keepPlace(t, d.StartAfter)
	return changed, nil
}

// markInput makes the Move say whether the parameters in the meta are still those of the input.
func (m *Move) markInput(t *task.Task, c task.Changes) {
	replaced := c.Input != nil && *c.Input != t.Input && t.Meta != "" && !t.CallsFunction()
	switch {
	case c.Meta != nil && t.InputReplaced:
		m.Clear = append(m.Clear, task.FieldInputReplaced)
	case c.Meta == nil && replaced && !t.InputReplaced:
		m.set(task.FieldInputReplaced, "1")
	}
}

// startOver makes a Move that reopens a task put it where a new task with the properties d begins.
func (m *Move) startOver(t *task.Task, d *task.Properties) {
	if t.Links == 0 {
		m.enterPlace(t, d.Place())
		return
	}
	m.enterPlace(t, task.WaitingPlace)
}

// enterPlace makes the Move put the task into a place. The property may still name the place of an earlier round.
func (m *Move) enterPlace(t *task.Task, place string) {
	if place != t.PlacedIn {
		m.putIn(place)
	}
}

// putIn makes the Move write the place of the task.
func (m *Move) putIn(place string) {
	if place == "" {
		m.Clear = append(m.Clear, task.FieldPlace)
	} else {
		m.set(task.FieldPlace, place)
	}
}

func withoutPlace(fields []task.Field) []task.Field {
	return slices.DeleteFunc(fields, func(f task.Field) bool { return f.Name == task.FieldPlace })
}

// keepPlace sets the score so that the task keeps its place in the queue. If start_after changes, the new value decides
// the place.
func (m *Move) keepPlace(t *task.Task, startAfter task.Time) {
	ready := max(startAfter, t.Current().Entered[task.Open])
	if startAfter == t.StartAfter {
		ready = max(ready, t.Ready)
	} else if t.Ready > 0 {
		m.Clear = append(m.Clear, task.FieldReady)
	}
	m.Score = Moment{Min: ready, Max: ready}
}
