package tdf

import "strconv"

// OpenFields returns what is written when a task is opened, but its id, log and stamp: all
// defaults, and of the properties that the original TDF does not know those that differ
// from theirs. What is looked up most comes first: Redis searches small hashes in order.
func (d *Properties) OpenFields(namespace string) []Field {
	plain := Defaults("", "", "")
	fields := []Field{
		{fieldState, string(Open)},
		{fieldRound, "0"},
		{fieldStartAfter, d.StartAfter.String()},
		{fieldEndBefore, d.EndBefore.String()},
		{fieldTimeout, d.Timeout.String()},
		{string(Fails), "0"},
		{fieldMaxFails, strconv.Itoa(d.MaxFails)},
		{string(Timeouts), "0"},
		{fieldMaxTimeouts, strconv.Itoa(d.MaxTimeouts)},
		{fieldProgram, d.Program},
		{fieldNamespace, namespace},
		{fieldSource, d.Source},
		{fieldInput, d.Input},
	}
	optional := func(name, value string, differs bool) {
		if differs {
			fields = append(fields, Field{name, value})
		}
	}
	optional(fieldMaxLosses, strconv.Itoa(d.MaxLosses), d.MaxLosses != plain.MaxLosses)
	optional(fieldGroup, d.Group, d.Group != "")
	optional(fieldMeta, d.Meta, d.Meta != "")
	optional(fieldFailOn, string(d.FailOn), d.FailOn != plain.FailOn)
	return fields
}

// Schedule returns a new task's score among the open ones, and when the server must look at it.
func (d *Properties) Schedule() (score, look Moment) {
	return Moment{Min: d.StartAfter}, noEarlierThan(d.EndBefore)
}
