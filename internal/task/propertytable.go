package task

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A Property is a row of [PropertyTable]. It describes a property that a manager sets when it opens a task.
type Property struct {
	Name    string // in Redis and in files
	JSON    string // the name of the member in JSON
	Want    string // describes the valid values, as in "a number from 1 to 1000"
	Meaning string // the description in docs/configuration.md; "" if a file cannot set a default for the property
	// the text of the flag in tdf open, tdf set and tdf retry; "" if these commands have no such flag, or a special one
	Help string
	Unit Unit

	InLists bool   // lists of tasks show the property, and not only tdf show
	Always  bool   // tdf shows the property even if it has its default value
	Of      string // the name of another property: tdf shows the property if that one does not have its default value

	original bool // the original TDF knows the property, so that every task has it

	read     func(d *Properties, text string) bool // stores a value; it returns false if the text is invalid
	readJSON func(d *Properties, data []byte) bool
	text     func(d *Properties) string // the value in Redis
	why      func(text string) error    // a *[PropertyError] with the reason why a text is invalid, or nil
	value    func(d *Properties) any    // the value in JSON
	isUsual  func(d *Properties) bool   // whether the property has its default value
	check    func(d *Properties) error  // a *[PropertyError] for an invalid value

	// define stores the value of a definition, and reports whether it has one. defined does the opposite. change and
	// changed do the same with Changes; they are nil if the property cannot change.
	define  func(d *Properties, from *Definition) bool
	defined func(d *Properties, to *Definition)
	change  func(d *Properties, from *Changes) bool
	changed func(d *Properties, to *Changes)
}

// A Unit says what the value of a property is.
type Unit int

// The units.
const (
	NoUnit       Unit = iota
	UnitTime          // seconds since the Unix epoch
	UnitSpan          // seconds
	UnitPatterns      // patterns of paths, separated by commas
)

// Names of the properties that a manager sets, in Redis and in files.
const (
	fieldStartAfter    = "start_after"
	fieldEndBefore     = "end_before"
	fieldClaimBefore   = "claim_before"
	fieldTimeout       = "timeout"
	fieldMaxFails      = "max_fails"
	fieldMaxTimeouts   = "max_timeouts"
	fieldProgram       = "program"
	FieldSource        = "source"
	fieldInput         = "input"
	fieldMaxLosses     = "max_losses"
	fieldMaxAttempts   = "max_attempts"
	fieldBackoff       = "backoff"
	fieldBackoffFactor = "backoff_factor"
	fieldBackoffMax    = "backoff_max"
	fieldKeepFinished  = "keep_finished"
	fieldKeepArchived  = "keep_archived"
	FieldKeepOutputs   = "keep_outputs"
	fieldUnique        = "unique"
	fieldUniqueUntil   = "unique_until"
	FieldQueue         = "queue"
	fieldPriority      = "priority"
	fieldTags          = "tags"
	fieldResources     = "resources"
	fieldMinTime       = "min_time"
	fieldLimitKey      = "limit_key"
	fieldGroup         = "group"
	fieldByGroup       = "by_group"
	fieldInputEncoding = "input_encoding"
	fieldMeta          = "meta"
	fieldOwner         = "owner"
	fieldCorrelationID = "correlation_id"
	fieldFailOn        = "fail_on"
	fieldGenerations   = "generations"
	fieldFetch         = "fetch"
	FieldBlobs         = "blobs"
)

// PropertyTable has a row for each property that a manager sets, except the dependencies (dependencies.go). Tasks are
// parsed, written, checked and changed by this table. The keys of [task_defaults], the flags of tdf and the members of
// JSON come from it, too. Redis searches a small hash from its beginning, so the properties that are read most often
// come first.
var PropertyTable = []Property{
	rowOf[Time, time.Time]{
		name: fieldStartAfter, original: true, is: moment(bounds{}),
		meaning: "No worker claims the task before this time. 0 means no limit.",
		help:    "`TIME` earliest start: Unix seconds, RFC 3339, or +2h from now",
		at:      func(d *Properties) *Time { return &d.StartAfter },
		value:   func(d *Definition) *time.Time { return &d.StartAfter },
		change:  func(c *Changes) **time.Time { return &c.StartAfter },
	}.property(),
	rowOf[Time, time.Time]{
		name: fieldEndBefore, original: true, is: moment(bounds{inf: true}),
		meaning: "If the task is not executed by this time, it expires. `inf` means no limit.",
		help:    "`TIME` time at which an unfinished task expires, in a format of --start-after, or inf for never",
		at:      func(d *Properties) *Time { return &d.EndBefore },
		value:   func(d *Definition) *time.Time { return &d.EndBefore },
		change:  func(c *Changes) **time.Time { return &c.EndBefore },
	}.property(),
	rowOf[Seconds, time.Duration]{
		name: fieldTimeout, original: true, is: span(bounds{above: true, inf: true}),
		meaning: "The longest run time of a round. `inf` means no limit.",
		help:    "`SPAN` maximum run time of a round: 90 (seconds), 90s, 2h, or inf",
		at:      func(d *Properties) *Seconds { return &d.Timeout },
		value:   func(d *Definition) *time.Duration { return &d.Timeout },
		change:  func(c *Changes) **time.Duration { return &c.Timeout },
	}.property(),
	rowOf[int, int]{
		name: fieldMaxFails, original: true, always: true, is: count(0, MaxCount),
		meaning: "How many times the task runs again after a failed round.",
		help:    "`N` how many times the task runs again after a failed round: with 3, there are up to 4 rounds",
		at:      func(d *Properties) *int { return &d.MaxFails },
		setting: func(d *Definition) **int { return &d.MaxFails },
		change:  func(c *Changes) **int { return &c.MaxFails },
	}.property(),
	rowOf[int, int]{
		name: fieldMaxTimeouts, original: true, always: true, is: count(0, MaxCount),
		meaning: "How many times the task runs again after a timed out round.",
		help:    "`N` how many times the task runs again after a timed-out round",
		at:      func(d *Properties) *int { return &d.MaxTimeouts },
		setting: func(d *Definition) **int { return &d.MaxTimeouts },
		change:  func(c *Changes) **int { return &c.MaxTimeouts },
	}.property(),
	rowOf[string, string]{
		name: fieldProgram, original: true, inLists: true, always: true,
		is:     text("the name of the program's directory on a worker", checkProgram),
		at:     func(d *Properties) *string { return &d.Program },
		value:  func(d *Definition) *string { return &d.Program },
		change: func(c *Changes) **string { return &c.Program },
	}.property(),
	rowOf[string, string]{
		name: FieldSource, original: true, always: true, is: text("the source of a program", checkSource),
		at:     func(d *Properties) *string { return &d.Source },
		value:  func(d *Definition) *string { return &d.Source },
		change: func(c *Changes) **string { return &c.Source },
	}.property(),
	rowOf[string, string]{
		name: fieldInput, original: true, inLists: true, is: text("the arguments of run.sh", checkInput),
		at:     func(d *Properties) *string { return &d.Input },
		value:  func(d *Definition) *string { return &d.Input },
		change: func(c *Changes) **string { return &c.Input },
	}.property(),
	rowOf[InputEncoding, InputEncoding]{
		name: fieldInputEncoding, inLists: true, is: choice(InputWords, InputBase64),
		help: "`CODE` base64 if --input has any bytes in base64, for the file $TDF_DIR/input (default: words, " +
			"the arguments of run.sh)",
		at:     func(d *Properties) *InputEncoding { return &d.InputEncoding },
		value:  func(d *Definition) *InputEncoding { return &d.InputEncoding },
		change: func(c *Changes) **InputEncoding { return &c.InputEncoding },
	}.property(),
	rowOf[int, int]{
		name: fieldMaxLosses, always: true, is: count(0, MaxCount),
		meaning: "How many times the task runs again after a lost round.",
		help:    "`N` how many times the task runs again after a lost round",
		at:      func(d *Properties) *int { return &d.MaxLosses },
		setting: func(d *Definition) **int { return &d.MaxLosses },
		change:  func(c *Changes) **int { return &c.MaxLosses },
	}.property(),
	rowOf[int, int]{
		name: fieldMaxAttempts, is: count(0, MaxCount),
		help: "`N` number of rounds that may fail, time out or be lost, all together, before the task ends; 0 " +
			"for no limit",
		at:      func(d *Properties) *int { return &d.MaxAttempts },
		setting: func(d *Definition) **int { return &d.MaxAttempts },
		change:  func(c *Changes) **int { return &c.MaxAttempts },
	}.property(),
	rowOf[Time, time.Time]{
		name: fieldClaimBefore, is: moment(bounds{inf: true}),
		help: "`TIME` time at which a task that no worker has claimed expires, in a format of --start-after, or " +
			"inf for never",
		at:     func(d *Properties) *Time { return &d.ClaimBefore },
		value:  func(d *Definition) *time.Time { return &d.ClaimBefore },
		change: func(c *Changes) **time.Time { return &c.ClaimBefore },
	}.property(),
	rowOf[Seconds, time.Duration]{
		name: fieldBackoff, is: span(bounds{most: MaxBackoff}),
		meaning: "How long the task waits before it runs again after its first failed or timed out round. 0 means " +
			"no wait.",
		help:    "`SPAN` wait after the first failed or timed-out round: 30 (seconds), 30s, 5m, or 0",
		at:      func(d *Properties) *Seconds { return &d.Backoff },
		setting: func(d *Definition) **time.Duration { return &d.Backoff },
		change:  func(c *Changes) **time.Duration { return &c.Backoff },
	}.property(),
	rowOf[float64, float64]{
		name: fieldBackoffFactor, of: fieldBackoff, is: number(1, MaxBackoffFactor),
		meaning: "Each further wait is longer than the last one by this factor.",
		help:    "`N` factor by which each further wait is longer (default: 2)",
		at:      func(d *Properties) *float64 { return &d.BackoffFactor },
		value:   func(d *Definition) *float64 { return &d.BackoffFactor },
		change:  func(c *Changes) **float64 { return &c.BackoffFactor },
	}.property(),
	rowOf[Seconds, time.Duration]{
		name: fieldBackoffMax, of: fieldBackoff, is: span(bounds{above: true, most: MaxBackoff}),
		meaning: "The longest wait, before it varies by up to 20 %.",
		help:    "`SPAN` longest wait (default: 5m)",
		at:      func(d *Properties) *Seconds { return &d.BackoffMax },
		value:   func(d *Definition) *time.Duration { return &d.BackoffMax },
		change:  func(c *Changes) **time.Duration { return &c.BackoffMax },
	}.property(),
	rowOf[Seconds, time.Duration]{
		name: fieldKeepFinished, is: span(bounds{above: true, inf: true}),
		meaning: "How long a finished task stays in Redis if no manager archives it. Then the server removes it, " +
			"with its outputs. `inf` means no limit.",
		help:    "`SPAN` how long the finished task stays in Redis if it is not archived: 3600, 12h, 7d, or inf",
		at:      func(d *Properties) *Seconds { return &d.KeepFinished },
		setting: func(d *Definition) **time.Duration { return &d.KeepFinished },
		change:  func(c *Changes) **time.Duration { return &c.KeepFinished },
	}.property(),
	rowOf[Seconds, time.Duration]{
		name: fieldKeepArchived, is: span(bounds{inf: true}),
		meaning: "How long an archived task stays in Redis. Then the server removes it, with its outputs. `inf` " +
			"means no limit.",
		help:    "`SPAN` how long the archived task stays in Redis, or inf",
		at:      func(d *Properties) *Seconds { return &d.KeepArchived },
		setting: func(d *Definition) **time.Duration { return &d.KeepArchived },
		change:  func(c *Changes) **time.Duration { return &c.KeepArchived },
	}.property(),
	rowOf[Seconds, time.Duration]{
		name: FieldKeepOutputs, is: span(bounds{above: true, inf: true}),
		meaning: "How long the outputs of a finished task stay in Redis. Then the server removes them, and the rest " +
			"of the task stays. `inf` means no limit.",
		help:    "`SPAN` how long the outputs of the finished task stay in Redis, or inf",
		at:      func(d *Properties) *Seconds { return &d.KeepOutputs },
		setting: func(d *Definition) **time.Duration { return &d.KeepOutputs },
		change:  func(c *Changes) **time.Duration { return &c.KeepOutputs },
	}.property(),
	rowOf[string, string]{
		name: fieldUnique, is: text(nameWant, checkName),
		at:    func(d *Properties) *string { return &d.Unique },
		value: func(d *Definition) *string { return &d.Unique },
	}.property(),
	rowOf[UniqueUntil, UniqueUntil]{
		name: fieldUniqueUntil, of: fieldUnique, is: choice(UntilFinished, UntilArchived),
		at:    func(d *Properties) *UniqueUntil { return &d.UniqueUntil },
		value: func(d *Definition) *UniqueUntil { return &d.UniqueUntil },
	}.property(),
	rowOf[string, string]{
		name: FieldQueue, inLists: true, is: label(),
		help:   "`NAME` queue of the task: only workers that serve the queue claim it (default: default)",
		at:     func(d *Properties) *string { return &d.Queue },
		value:  func(d *Definition) *string { return &d.Queue },
		change: func(c *Changes) **string { return &c.Queue },
	}.property(),
	rowOf[int, int]{
		name: fieldPriority, inLists: true, is: count(math.MinInt32, math.MaxInt32),
		help:    "`N` priority: workers claim tasks with higher priorities first (default: 0)",
		at:      func(d *Properties) *int { return &d.Priority },
		setting: func(d *Definition) **int { return &d.Priority },
		change:  func(c *Changes) **int { return &c.Priority },
	}.property(),
	rowOf[[]string, []string]{
		name: fieldTags, inLists: true, is: tags(),
		help:   "`TAGS` tags that a worker must offer to claim the task: gpu,ssd",
		at:     func(d *Properties) *[]string { return &d.Tags },
		value:  func(d *Definition) *[]string { return &d.Tags },
		change: func(c *Changes) **[]string { return &c.Tags },
	}.property(),
	rowOf[string, string]{
		name: fieldResources, inLists: true, is: resources(),
		help: "`REQUEST` what a round needs: 'cpus=4 memory=2G', or with alternatives: 'gpus=1 or cpus=16'; a " +
			"worker must have the memory rounded up by up to 12.5 % (default: nothing)",
		at:     func(d *Properties) *string { return &d.Resources },
		value:  func(d *Definition) *string { return &d.Resources },
		change: func(c *Changes) **string { return &c.Resources },
	}.property(),
	rowOf[Seconds, time.Duration]{
		name: fieldMinTime, is: span(bounds{most: maxMinTime}),
		help: "`SPAN` how long a round takes at least: 600 (seconds), 10m; a worker that stops earlier, with this " +
			"rounded up by up to 12.5 %, does not claim the task",
		at:     func(d *Properties) *Seconds { return &d.MinTime },
		value:  func(d *Definition) *time.Duration { return &d.MinTime },
		change: func(c *Changes) **time.Duration { return &c.MinTime },
	}.property(),
	rowOf[string, string]{
		name: fieldLimitKey, inLists: true, is: text(nameWant, checkName),
		help:   "`KEY` what the task needs, such as a database: tdf limit sets how many tasks of a key run at once",
		at:     func(d *Properties) *string { return &d.LimitKey },
		value:  func(d *Definition) *string { return &d.LimitKey },
		change: func(c *Changes) **string { return &c.LimitKey },
	}.property(),
	rowOf[string, string]{
		name: fieldGroup, json: "campaign", inLists: true, is: text(nameWant, checkName),
		meaning: "The group that the task belongs to, such as a campaign or a stage. Empty means no group.",
		at:      func(d *Properties) *string { return &d.Group },
		value:   func(d *Definition) *string { return &d.Group },
	}.property(),
	rowOf[bool, bool]{
		name: fieldByGroup, is: yesOrNo(),
		help:   "`YES` yes lets workers for this campaign alone (their key group) claim the task, too (default: no)",
		at:     func(d *Properties) *bool { return &d.ByGroup },
		value:  func(d *Definition) *bool { return &d.ByGroup },
		change: func(c *Changes) **bool { return &c.ByGroup },
	}.property(),
	rowOf[string, string]{
		name: fieldMeta, inLists: true, is: text(fmt.Sprintf("text of up to %d bytes", MaxMeta), checkMeta),
		meaning: "The manager's own data about the task. Server and workers do not use it.",
		help:    "`TEXT` your own data about the task",
		at:      func(d *Properties) *string { return &d.Meta },
		value:   func(d *Definition) *string { return &d.Meta },
		change:  func(c *Changes) **string { return &c.Meta },
	}.property(),
	rowOf[string, string]{
		name: fieldOwner, inLists: true, is: text(nameWant, checkName),
		at:    func(d *Properties) *string { return &d.Owner },
		value: func(d *Definition) *string { return &d.Owner },
	}.property(),
	rowOf[string, string]{
		name: fieldCorrelationID, is: text(nameWant, checkName),
		at:    func(d *Properties) *string { return &d.CorrelationID },
		value: func(d *Definition) *string { return &d.CorrelationID },
	}.property(),
	rowOf[FailOn, FailOn]{
		name: fieldFailOn, always: true, is: choice(FailOnStderr, FailOnExit, FailOnAny),
		meaning: "The rule that decides whether a round failed. With `stderr`, any text on stderr is a failure. " +
			"With `exit`, an exit status other than 0 is a failure. With `any`, both are failures. Without this " +
			"key, `tdf` and the HTTP API open tasks with `exit`.",
		help:   "`RULE` rule by which a round fails: stderr, exit or any",
		at:     func(d *Properties) *FailOn { return &d.FailOn },
		value:  func(d *Definition) *FailOn { return &d.FailOn },
		change: func(c *Changes) **FailOn { return &c.FailOn },
	}.property(),
	rowOf[int, int]{
		name: fieldGenerations, is: count(0, MaxCount),
		help:    "`N` number of generations of tasks that may come from the task (default: 1000)",
		at:      func(d *Properties) *int { return &d.Generations },
		setting: func(d *Definition) **int { return &d.Generations },
		change:  func(c *Changes) **int { return &c.Generations },
	}.property(),
	rowOf[[]string, []string]{
		name: fieldFetch, is: patterns(),
		help: "`PATTERNS` files to bring back, relative to the directory of the program, such as 'out/*'; may be " +
			"repeated",
		at:     func(d *Properties) *[]string { return &d.Fetch },
		value:  func(d *Definition) *[]string { return &d.Fetch },
		change: func(c *Changes) **[]string { return &c.Fetch },
	}.property(),
	rowOf[[]string, []string]{
		name: FieldBlobs, is: blobs(),
		at:    func(d *Properties) *[]string { return &d.Blobs },
		value: func(d *Definition) *[]string { return &d.Blobs },
	}.property(),
}

// usual has the default of every property.
var usual = Defaults("", "", "")

// invalid returns a *[PropertyError] for a text that is no value of the property.
func (p *Property) invalid(text string) error {
	return invalidProperty(p.Name, "%q is not %s", text, p.Want)
}

// Set stores a value from a file or a flag. If the text is invalid, Set changes nothing, and returns a
// *[PropertyError].
func (p *Property) Set(d *Properties, text string) error {
	next := *d
	if !p.read(&next, text) {
		return cmp.Or(p.why(text), p.invalid(text))
	}
	if err := p.check(&next); err != nil {
		return err
	}
	*d = next
	return nil
}

// SetChange stores a new value, like Set. It returns an error if the property cannot change.
func (p *Property) SetChange(c *Changes, text string) error {
	d := usual
	if err := p.Set(&d, text); err != nil {
		return err
	}
	if p.changed == nil {
		return invalidProperty(p.Name, "cannot change")
	}
	p.changed(&d, c)
	return nil
}

// CanChange reports whether [Changes] has the property.
func (p *Property) CanChange() bool { return p.change != nil }

// Flag returns the name of the property's flag.
func (p *Property) Flag() string { return strings.ReplaceAll(p.Name, "_", "-") }

// Preset returns the default of the property, as Redis stores it.
func (p *Property) Preset() string { return p.text(&usual) }

// Text returns the value of the property, as Redis stores it.
func (p *Property) Text(d *Properties) string { return p.text(d) }

// Shown reports whether tdf shows the property: whether it has another value than its default, or always matters.
func (p *Property) Shown(d *Properties) bool {
	if p.Of != "" {
		return !property(p.Of).isUsual(d)
	}
	return p.Always || !p.isUsual(d)
}

// property returns the row with this name.
func property(name string) *Property {
	return &PropertyTable[slices.IndexFunc(PropertyTable, func(p Property) bool { return p.Name == name })]
}

// properties reads the properties that a manager sets.
func (p *parser) properties(d *Properties) {
	*d = usual
	for i := range PropertyTable {
		row := &PropertyTable[i]
		s := p.h[row.Name]
		if s == "" || row.read(d, s) || row.original && row.Unit != NoUnit && row.read(d, asOriginal(s)) {
			continue
		}
		p.fail(row.invalid(s))
	}
	d.After, d.AfterAny = p.dependencies(FieldAfter, FieldAfterGroup), p.dependencies(FieldAfterAny, FieldAfterGroupAny)
}

// UsualFields is the number of fields that AppendOpenFields appends for most tasks.
const UsualFields = 16

// OpenFields returns the properties that a manager writes when it opens a task, except the id, the log and the time of
// opening. It omits a property with its default value if the original TDF does not know this property.
func (d *Properties) OpenFields(namespace string) []Field {
	return d.AppendOpenFields(make([]Field, 0, UsualFields), namespace)
}

// AppendOpenFields appends what OpenFields returns.
func (d *Properties) AppendOpenFields(fields []Field, namespace string) []Field {
	fields = append(fields,
		Field{FieldState, string(Open)}, Field{FieldRound, "0"}, Field{string(Fails), "0"},
		Field{string(Timeouts), "0"}, Field{fieldNamespace, namespace})
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

// Validate returns a *[PropertyError] for the first invalid property, or nil. Managers call it when they open a task.
// The server validates open tasks, too, because other programs can write tasks to Redis.
func (d *Properties) Validate() error {
	for i := range PropertyTable {
		if err := PropertyTable[i].check(d); err != nil {
			return err
		}
	}
	if d.InputEncoding == InputBase64 {
		if _, _, err := d.Arguments(); err != nil {
			return invalidProperty(fieldInput, "%v", err)
		}
	}
	if err := d.checkFetch(); err != nil {
		return err
	}
	if d.EndBefore <= d.StartAfter {
		return invalidProperty(fieldEndBefore, "%v is not after start_after, %v; the task could never run", d.EndBefore,
			d.StartAfter)
	}
	if d.ClaimBefore <= d.StartAfter {
		return invalidProperty(fieldClaimBefore, "%v is not after start_after, %v; the task could never run",
			d.ClaimBefore, d.StartAfter)
	}
	return d.checkDependencies()
}
