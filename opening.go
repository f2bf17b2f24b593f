package tdf

import "fmt"

// OpenFields returns what is written when a task is opened, but its id and log, in an order that is always
// the same: all defaults, and of the properties that the original TDF does not know those
// that differ from theirs.
func (d *Definition) OpenFields(namespace string) []Field {
	plain := Define("", "", "")
	fields := []Field{
		{fieldNamespace, namespace},
		{fieldProgram, d.Program},
		{fieldSource, d.Source},
		{fieldInput, d.Input},
		{fieldStartAfter, d.StartAfter.String()},
		{fieldEndBefore, d.EndBefore.String()},
		{fieldTimeout, d.Timeout.String()},
		{fieldMaxFails, fmt.Sprint(d.MaxFails)},
		{fieldMaxTimeouts, fmt.Sprint(d.MaxTimeouts)},
		{fieldState, string(Open)},
		{fieldRound, "0"},
		{string(Fails), "0"},
		{string(Timeouts), "0"},
	}
	optional := func(name, value string, differs bool) {
		if differs {
			fields = append(fields, Field{name, value})
		}
	}
	optional(fieldMaxLosses, fmt.Sprint(d.MaxLosses), d.MaxLosses != plain.MaxLosses)
	optional(fieldGroup, d.Group, d.Group != "")
	optional(fieldMeta, d.Meta, d.Meta != "")
	optional(fieldFailOn, string(d.FailOn), d.FailOn != plain.FailOn)
	return fields
}

// Opening returns a new task's score among the open ones, and when the server must look at it.
func (d *Definition) Opening() (score, look Moment) {
	return Moment{Min: d.StartAfter}, until(d.EndBefore)
}
