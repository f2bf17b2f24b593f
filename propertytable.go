package tdf

import (
	"fmt"
	"math"
)

// A Property is a row of [PropertyTable]. It describes a property that a manager sets when it opens a task.
type Property struct {
	Name    string // in Redis, in files and in JSON
	Want    string // describes the valid values, as in "a number from 1 to 1000"
	Meaning string // the description in docs/configuration.md; "" if a file cannot set a default for the property

	original bool // the original TDF knows the property, so that every task has it
	isTime   bool // the value is a time or a span in seconds

	read    func(d *Properties, text string) bool // stores a value; it returns false if the text is invalid
	text    func(d *Properties) string            // the value in Redis
	isUsual func(d *Properties) bool              // whether the property has its default value
	check   func(d *Properties) error             // a *[PropertyError] for an invalid value
	change  func(d *Properties, c *Changes)       // stores the new value of c, if it has one
}

// PropertyTable has a row for each property that a manager sets, except the dependencies (dependencies.go). Tasks are parsed,
// written, checked and changed by this table, and the keys of [task_defaults] come from it. Redis searches a small hash
// from its beginning, so the properties that are read most often come first.
var PropertyTable = []Property{
	moment(
		fieldStartAfter, "No worker claims the task before this time. 0 means no limit.", original,
		func(d *Properties) *Time { return &d.StartAfter }, func(c *Changes) *Time { return c.StartAfter }, bounds{},
	),
	moment(
		fieldEndBefore, "If the task is not executed by this time, it expires. `inf` means no limit.", original,
		func(d *Properties) *Time { return &d.EndBefore }, func(c *Changes) *Time { return c.EndBefore }, bounds{inf: true},
	),
	span(
		fieldTimeout, "The longest run time of a round. `inf` means no limit.", original,
		func(d *Properties) *Seconds { return &d.Timeout }, func(c *Changes) *Seconds { return c.Timeout }, bounds{above: true, inf: true},
	),
	count(
		fieldMaxFails, "How many times the task runs again after a failed round.", original,
		func(d *Properties) *int { return &d.MaxFails }, func(c *Changes) *int { return c.MaxFails }, 0, MaxCount,
	),
	count(
		fieldMaxTimeouts, "How many times the task runs again after a timed out round.", original,
		func(d *Properties) *int { return &d.MaxTimeouts }, func(c *Changes) *int { return c.MaxTimeouts }, 0, MaxCount,
	),
	text(
		fieldProgram, "", original,
		func(d *Properties) *string { return &d.Program }, func(c *Changes) *string { return c.Program },
		"the name of the program's directory on a worker", checkProgram,
	),
	text(
		fieldSource, "", original,
		func(d *Properties) *string { return &d.Source }, func(c *Changes) *string { return c.Source },
		"the source of a program", checkSource,
	),
	text(
		fieldInput, "", original,
		func(d *Properties) *string { return &d.Input }, func(c *Changes) *string { return c.Input },
		"the arguments of run.sh", checkInput,
	),
	count(
		fieldMaxLosses, "How many times the task runs again after a lost round.", added,
		func(d *Properties) *int { return &d.MaxLosses }, func(c *Changes) *int { return c.MaxLosses }, 0, MaxCount,
	),
	span(
		fieldBackoff, "How long the task waits before it runs again after its first failed or timed out round. 0 means no wait.", added,
		func(d *Properties) *Seconds { return &d.Backoff }, func(c *Changes) *Seconds { return c.Backoff }, bounds{most: MaxBackoff},
	),
	number(
		fieldBackoffFactor, "Each further wait is longer than the last one by this factor.", added,
		func(d *Properties) *float64 { return &d.BackoffFactor }, func(c *Changes) *float64 { return c.BackoffFactor }, 1, MaxBackoffFactor,
	),
	span(
		fieldBackoffMax, "The longest wait, before it varies by up to 20 %.", added,
		func(d *Properties) *Seconds { return &d.BackoffMax }, func(c *Changes) *Seconds { return c.BackoffMax }, bounds{above: true, most: MaxBackoff},
	),
	span(
		fieldKeepFinished, "How long a finished task stays in Redis if no manager archives it. Then the server removes it, with its outputs. `inf` means no limit.", added,
		func(d *Properties) *Seconds { return &d.KeepFinished }, func(c *Changes) *Seconds { return c.KeepFinished }, bounds{above: true, inf: true},
	),
	span(
		fieldKeepArchived, "How long an archived task stays in Redis. Then the server removes it, with its outputs. `inf` means no limit.", added,
		func(d *Properties) *Seconds { return &d.KeepArchived }, func(c *Changes) *Seconds { return c.KeepArchived }, bounds{inf: true},
	),
	span(
		fieldKeepOutputs, "How long the outputs of a finished task stay in Redis. Then the server removes them, and the rest of the task stays. `inf` means no limit.", added,
		func(d *Properties) *Seconds { return &d.KeepOutputs }, func(c *Changes) *Seconds { return c.KeepOutputs }, bounds{above: true, inf: true},
	),
	text(
		fieldUnique, "", added,
		func(d *Properties) *string { return &d.Unique }, nil, nameWant, checkName,
	),
	choice(
		fieldUniqueUntil, "When a task with a unique key gives the key back: when it has finished, or when it is archived.", added,
		func(d *Properties) *UniqueUntil { return &d.UniqueUntil }, nil, UntilFinished, UntilArchived,
	),
	label(
		fieldQueue, "The queue of the task. Only workers that serve the queue claim the task. Empty means the queue of the workers without `queues`.", added,
		func(d *Properties) *string { return &d.Queue }, func(c *Changes) *string { return c.Queue },
	),
	count(
		fieldPriority, "Workers claim the tasks of a queue with the highest priority first.", added,
		func(d *Properties) *int { return &d.Priority }, func(c *Changes) *int { return c.Priority }, math.MinInt32, math.MaxInt32,
	),
	tags(
		fieldTags, "The tags of the task. Only workers that offer all of them claim the task.", added,
		func(d *Properties) *[]string { return &d.Tags }, func(c *Changes) *[]string { return c.Tags },
	),
	text(
		fieldLimitKey, "The name of something that the task needs, such as a database. `tdf limit` limits how many tasks of a key run at once. Empty means no key.", added,
		func(d *Properties) *string { return &d.LimitKey }, func(c *Changes) *string { return c.LimitKey }, nameWant, checkName,
	),
	text(
		fieldGroup, "The group that the task belongs to, such as a campaign or a stage. Empty means no group.", added,
		func(d *Properties) *string { return &d.Group }, nil, nameWant, checkName,
	),
	text(
		fieldMeta, "The manager's own data about the task. Server and workers do not use it.", added,
		func(d *Properties) *string { return &d.Meta }, func(c *Changes) *string { return c.Meta },
		fmt.Sprintf("text of up to %d bytes", MaxMeta), checkMeta,
	),
	choice(
		fieldFailOn, "The rule that decides whether a round failed. With `stderr`, any text on stderr is a failure. With `exit`, an exit status other than 0 is a failure. With `any`, both are failures.", added,
		func(d *Properties) *FailOn { return &d.FailOn }, func(c *Changes) *FailOn { return c.FailOn }, FailOnStderr, FailOnExit, FailOnAny,
	),
}

// Whether the original TDF knows a property.
const (
	original = true
	added    = false
)

// usual has the default of every property.
var usual = Defaults("", "", "")

// invalid returns a *[PropertyError] for a text that is no value of the property.
func (p *Property) invalid(text string) error {
	return invalidProperty(p.Name, "%q is not %s", text, p.Want)
}

// Set stores a value from a file or a flag. If the text is invalid, Set changes nothing, and returns a *[PropertyError].
func (p *Property) Set(d *Properties, text string) error {
	next := *d
	if !p.read(&next, text) {
		return p.invalid(text)
	}
	if err := p.check(&next); err != nil {
		return err
	}
	*d = next
	return nil
}

// Preset returns the default of the property, as Redis stores it.
func (p *Property) Preset() string { return p.text(&usual) }

// properties reads the properties that a manager sets.
func (p *parser) properties() Properties {
	d := usual
	for i := range PropertyTable {
		row := &PropertyTable[i]
		s := p.h[row.Name]
		if s == "" || row.read(&d, s) || row.original && row.isTime && row.read(&d, asOriginal(s)) {
			continue
		}
		p.fail(row.invalid(s))
	}
	d.After, d.AfterAny = p.dependencies(FieldAfter, FieldAfterGroup), p.dependencies(FieldAfterAny, FieldAfterGroupAny)
	return d
}

// OpenFields returns the properties that a manager writes when it opens a task, except the id, the log and the time of
// opening. It omits a property with its default value if the original TDF does not know this property.
func (d *Properties) OpenFields(namespace string) []Field {
	fields := append(make([]Field, 0, 16), // most tasks have no more fields
		Field{fieldState, string(Open)}, Field{fieldRound, "0"}, Field{string(Fails), "0"}, Field{string(Timeouts), "0"}, Field{fieldNamespace, namespace})
	for i := range PropertyTable {
		if p := &PropertyTable[i]; p.original || !p.isUsual(d) {
			fields = append(fields, Field{p.Name, p.text(d)})
		}
	}
	if place := d.FirstPlace(); place != "" {
		fields = append(fields, Field{FieldPlace, place})
	}
	return append(fields, d.dependencyFields()...)
}

// Apply returns a changed copy of the properties.
func (c Changes) Apply(d Properties) Properties {
	for i := range PropertyTable {
		PropertyTable[i].change(&d, &c)
	}
	return d
}

// Validate returns a *[PropertyError] for the first invalid property, or nil. Managers call it when they open a task.
// The server validates open tasks, too, because other programs can write tasks to Redis.
func (d *Properties) Validate() error {
	for i := range PropertyTable {
		if err := PropertyTable[i].check(d); err != nil {
			return err
		}
	}
	if d.EndBefore <= d.StartAfter {
		return invalidProperty(fieldEndBefore, "%v is not after start_after, %v; the task could never run", d.EndBefore, d.StartAfter)
	}
	return d.checkDependencies()
}
