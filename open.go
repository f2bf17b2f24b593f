package tdf

import "strconv"

// OpenFields returns the properties that a manager writes when it opens a task, except the id, the log and the time of
// opening. It omits a property with its default value if the original TDF does not know this property. The properties
// that are read most often come first, because Redis searches a small hash from the beginning.
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
	optional(fieldBackoff, d.Backoff.String(), d.Backoff != plain.Backoff)
	optional(fieldBackoffFactor, Seconds(d.BackoffFactor).String(), d.BackoffFactor != plain.BackoffFactor)
	optional(fieldBackoffMax, d.BackoffMax.String(), d.BackoffMax != plain.BackoffMax)
	optional(fieldKeepFinished, d.KeepFinished.String(), d.KeepFinished != plain.KeepFinished)
	optional(fieldKeepArchived, d.KeepArchived.String(), d.KeepArchived != plain.KeepArchived)
	optional(fieldKeepOutputs, d.KeepOutputs.String(), d.KeepOutputs != plain.KeepOutputs)
	optional(fieldQueue, d.Queue, d.Queue != "")
	optional(fieldPriority, strconv.Itoa(d.Priority), d.Priority != 0)
	optional(fieldTags, JoinTags(d.Tags), len(d.Tags) > 0)
	optional(fieldLimitKey, d.LimitKey, d.LimitKey != "")
	optional(FieldPlace, d.FirstPlace(), d.FirstPlace() != "")
	fields = append(fields, d.dependencyFields()...)
	optional(fieldGroup, d.Group, d.Group != "")
	optional(fieldMeta, d.Meta, d.Meta != "")
	optional(fieldFailOn, string(d.FailOn), d.FailOn != plain.FailOn)
	optional(fieldUnique, d.Unique, d.Unique != "")
	optional(fieldUniqueUntil, string(d.UniqueUntil), d.Unique != "" && d.UniqueUntil != plain.UniqueUntil)
	return fields
}

// Schedule returns a new task's score in the open list, and the time at which the task is due.
func (d *Properties) Schedule() (score, due Moment) {
	if d.HasDependencies() {
		return Moment{Min: d.StartAfter}, Now // the server looks up what the task waits for
	}
	return Moment{Min: d.StartAfter}, noEarlierThan(d.EndBefore)
}
