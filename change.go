package tdf

import (
	"errors"
	"slices"
	"strings"
)

// Changes are new values for properties of a task. A nil field leaves its property unchanged. The group of a task cannot
// be changed.
type Changes struct {
	Program, Source, Input           *string
	StartAfter, EndBefore            *Time
	Timeout                          *Seconds
	MaxFails, MaxTimeouts, MaxLosses *int
	Meta                             *string
	FailOn                           *FailOn
}

// ErrUnchanged is returned when the task already has all the values of a change.
var ErrUnchanged = errors.New("it already has these values")

// Apply returns a copy of the properties with the changes made.
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

// Change changes properties of an open task. The task keeps its round. It also keeps its place in the queue, unless
// start_after changes. The error is a *[StateError] if the task is not open, a *[PropertyError] if the changed task would
// be invalid, or [ErrUnchanged].
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

// ReopenWith reopens a finished task, as [Task.Reopen] does, and changes its properties at the same time. The error may
// also be a *[PropertyError].
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

// applyChanges adds the changes to a Move that leads to open. It returns the names of the changed properties.
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
			m.Clear = append(m.Clear, f.Name) // a property with its default value is not stored
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

// keepPlace gives the task its old place in the queue. If start_after changes, the new value decides the place.
func (m *Move) keepPlace(t *Task, startAfter Time) {
	ready := max(startAfter, t.Current().Entered[Open])
	if startAfter == t.StartAfter {
		ready = max(ready, t.Ready)
	} else if t.Ready > 0 {
		m.Clear = append(m.Clear, fieldReady)
	}
	m.Score = Moment{Min: ready, Max: ready}
}
