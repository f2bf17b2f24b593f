package tdf

import (
	"errors"
	"slices"
	"strings"
)

// Changes are properties of a task that somebody changes by hand; nil: as it is. What a task belongs to,
// its group, never changes.
type Changes struct {
	Program, Source, Input           *string
	StartAfter, EndBefore            *Time
	Timeout                          *Seconds
	MaxFails, MaxTimeouts, MaxLosses *int
	Meta                             *string
	FailOn                           *FailOn
}

// ErrUnchanged says that a task is already as it is to be.
var ErrUnchanged = errors.New("it is like that already")

// Apply returns the definition with the changes made.
func (c Changes) Apply(d Properties) Properties {
	replace(&d.Program, c.Program)
	replace(&d.Source, c.Source)
	replace(&d.Input, c.Input)
	replace(&d.StartAfter, c.StartAfter)
	replace(&d.EndBefore, c.EndBefore)
	replace(&d.Timeout, c.Timeout)
	replace(&d.MaxFails, c.MaxFails)
	replace(&d.MaxTimeouts, c.MaxTimeouts)
	replace(&d.MaxLosses, c.MaxLosses)
	replace(&d.Meta, c.Meta)
	replace(&d.FailOn, c.FailOn)
	return d
}

func replace[T any](property, value *T) {
	if value != nil {
		*property = *value
	}
}

// Change changes an open task in place: it keeps its round, and its place in the queue unless its
// start_after changes. The error is a *[PropertyError] where the changed task would make no sense, or
// [ErrUnchanged].
func (t *Task) Change(c Changes) (Move, error) {
	m, err := t.move(VerbChange, Open)
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

// ReopenWith is [Task.Reopen] with changes.
func (t *Task) ReopenWith(c Changes) (Move, error) {
	m, err := t.Reopen()
	if err != nil {
		return m, err
	}
	changed, err := m.applyChanges(t, c)
	if len(changed) > 0 {
		m.Note += ", changed: " + strings.Join(changed, ", ")
	}
	return m, err
}

// change adds what makes the changes to a move that leads to open, and returns the names of the
// properties that they are made to.
func (m *Move) applyChanges(t *Task, c Changes) (changed []string, err error) {
	d := c.Apply(t.Properties)
	if err := d.Validate(); err != nil {
		return nil, err
	}
	before, after := t.OpenFields(""), d.OpenFields("")
	for _, f := range after {
		if !slices.Contains(before, f) {
			m.Set = append(m.Set, f)
			changed = append(changed, f.Name)
		}
	}
	for _, f := range before {
		if !slices.ContainsFunc(after, func(g Field) bool { return g.Name == f.Name }) {
			m.Clear = append(m.Clear, f.Name) // it has its default again
			changed = append(changed, f.Name)
		}
	}
	m.NextDue = noEarlierThan(d.EndBefore)
	m.Score = Moment{Min: d.StartAfter}
	if m.Verb == VerbChange {
		m.keepPlace(t, d.StartAfter)
	}
	return changed, nil
}

// requeue puts the task where it was in the queue; where its start_after is another one now, where
// that says.
func (m *Move) keepPlace(t *Task, startAfter Time) {
	ready := max(startAfter, t.Current().Entered[Open])
	if startAfter == t.StartAfter {
		ready = max(ready, t.Ready)
	} else if t.Ready > 0 {
		m.Clear = append(m.Clear, fieldReady)
	}
	m.Score = Moment{Min: ready, Max: ready}
}
