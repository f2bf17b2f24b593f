package task

import "time"

// FailOn is the rule that decides whether a round has failed (docs/lifecycle.md, "What makes a round fail").
type FailOn string

// The rules for failure. Under each rule, a round has also failed if a signal ended its program or if the program could
// not be run.
const (
	FailOnStderr FailOn = "stderr" // the round fails if the program printed something to stderr; this is the default
	FailOnExit   FailOn = "exit"   // the round fails if the exit status is not 0
	FailOnAny    FailOn = "any"    // the round fails if there is text on stderr or if the exit status is not 0

	// FailOnUnknown is for a worker that does not know the condition: a round fails if it would under each of them. No
	// task has it.
	FailOnUnknown FailOn = ""
)

// Properties are the part of a task that a manager sets when it opens the task: the program, its input, and the task's
// limits. Use [Defaults] to fill in the defaults. The zero value is invalid.
type Properties struct {
	Program string // the program's name, and its directory on a worker
	// where workers get the program from (docs/programs.md); "" if a handler of a worker runs the program
	Source string
	Input  string // the arguments of run.sh, split into words as a POSIX shell does

	InputEncoding InputEncoding // what Input is, if it is no arguments

	StartAfter Time    // earliest time at which a worker may claim the task; 0 means at once
	EndBefore  Time    // latest time at which the program must have ended; Never means no limit
	Timeout    Seconds // maximum run time of a round; Forever means no limit

	// ClaimBefore is the time at which the task expires if no worker has claimed it. Unlike EndBefore, it does not
	// limit a running task. Never means no limit.
	ClaimBefore Time

	MaxFails    int // maximum number of failed rounds after which the task runs again
	MaxTimeouts int // maximum number of timed out rounds after which the task runs again
	MaxLosses   int // maximum number of lost rounds after which the task runs again

	// MaxAttempts is the maximum number of rounds that fail, time out or are lost, all together. 0 means that only the
	// other limits count.
	MaxAttempts int

	// After a failed or timed out round, the task waits before it runs again. The n-th wait is about Backoff times
	// BackoffFactor to the power of n-1, and about BackoffMax at the most (docs/lifecycle.md, "Back-off").
	Backoff       Seconds // the first wait; 0 means that the task does not wait
	BackoffFactor float64 // from 1 up
	BackoffMax    Seconds

	// The server removes a task that has been finished for KeepFinished, or archived for KeepArchived
	// (docs/lifecycle.md, "Retention"). Forever means that the task stays.
	KeepFinished, KeepArchived Seconds

	// The server removes the outputs of a task that has been finished for KeepOutputs. Forever means that they stay as
	// long as the task.
	KeepOutputs Seconds

	// Workers claim the tasks with a higher Priority first. Only a worker that serves the Queue and offers all of the
	// Tags claims the task (docs/lifecycle.md, "Queues").
	Queue    string   // "" for the queue of the workers without `queues=`
	Priority int      // from -2147483648 to 2147483647; the default is 0
	Tags     []string // at most 16

	// Resources are what a round of the task needs, such as "cpus=4 memory=2G" or "gpus=1 or cpus=16"
	// (docs/resources.md). Only a worker that has so much free claims the task. "" means that the task asks for nothing.
	Resources string

	// MinTime is how long a round of the task takes at least. A worker with a time limit does not claim the task if it
	// stops earlier. 0 means that the task does not say so.
	MinTime Seconds

	// The tasks with the same LimitKey share a limit: how many of them run at once, and how often one of them starts
	// (docs/lifecycle.md, "Limits per key").
	LimitKey string // "" if the task needs none; at most 200 bytes

	// The task runs only after the tasks of After have succeeded, and the tasks of AfterAny have ended
	// (docs/lifecycle.md, "Dependencies"). Nil means that it does not wait. Of a task in Redis, they may not have been
	// read.
	After, AfterAny *Dependencies

	Group string // the group (campaign) of the task; "" if it has no group

	// ByGroup means that workers for the task's group find the task by its group (docs/lifecycle.md, "Workers for one
	// group").
	ByGroup bool

	Meta string // the manager's own data, up to 4 KiB; TDF does not interpret it
	// the name of the token that has opened the task, and may see and change it; "" if no token has opened it
	Owner string

	CorrelationID string // an id that the opener has given to the call that opened the task; TDF only keeps it

	FailOn FailOn

	// Only one task at a time holds a unique key. While a task holds it, opening another task with this key returns
	// that task instead (docs/lifecycle.md, "Unique tasks").
	Unique      string // the key; "" if the task needs none
	UniqueUntil UniqueUntil

	// Generations is how many generations of tasks may come from the task (docs/lifecycle.md, "Tasks that open tasks").
	Generations int

	// Fetch has patterns of files that the worker stores after a round that succeeded (docs/programs.md, "Files that a
	// round brings back"). Nil means that it stores none.
	Fetch []string

	// Blobs names the blobs that the task needs, as texts of [Blob] (docs/blobs.md). Nil means that it needs none.
	Blobs []string

	// Apart keeps the task from workers of the original TDF, if they cannot fetch its program. It is no property in
	// Redis: the setting original_workers of the namespace decides.
	Apart bool
}

// Defaults returns the properties of a task with the built-in defaults: no time limits, MaxLosses 3, no back-off, no
// retention period, no group, and [FailOnStderr]. With MaxFails and MaxTimeouts 0, the first failure or timeout ends
// the task.
func Defaults(program, source, input string) Properties {
	return Properties{
		Program: program, Source: source, Input: input,
		EndBefore: Never, ClaimBefore: Never, Timeout: Forever, MaxLosses: 3, BackoffFactor: 2, BackoffMax: 300,
		KeepFinished: Forever, KeepArchived: Forever, KeepOutputs: Forever, FailOn: FailOnStderr,
		UniqueUntil: UntilFinished, InputEncoding: InputWords,
		Generations: 1000,
	}
}

// A Definition says which program a task runs, when, and how often it may fail. If a field is zero, the task gets the
// value of the TaskDefaults of the manager. If that value is zero too, it gets the default below (docs/lifecycle.md).
type Definition struct {
	Program string // the program's name; the worker uses it as the name of a directory
	Source  string // where workers get the program (docs/programs.md); "" if handlers of workers run it
	Input   string // the arguments of run.sh; the worker splits them into words as a POSIX shell does

	// InputEncoding is InputBase64 if Input has any bytes, in base64: the program finds them in a file
	// (docs/programs.md, "Inputs of any bytes"). Default: Input has words.
	InputEncoding InputEncoding

	// Queue, Priority and Tags decide which workers claim the task, and in which order (docs/lifecycle.md, "Queues").
	// Only a worker that serves the queue and offers all of the tags claims it. Higher priorities come first. Nil means
	// the default priority, 0. Default: no queue and no tags.
	Queue    string
	Priority *int
	Tags     []string

	// Resources are what a round of the task needs, such as "cpus=4 memory=2G" or "gpus=1 or cpus=16"
	// (docs/resources.md). Memory and MinTime are rounded up when workers are compared with them. Default: the task
	// asks for nothing.
	Resources string

	// MinTime is how long a round of the task takes at least. A worker that stops earlier, because it has a time limit,
	// does not claim the task. Default: the task does not say so.
	MinTime time.Duration

	// LimitKey names what the task needs, such as a database. A user can limit how many tasks of a key run at once, and
	// how often one of them starts (docs/lifecycle.md, "Limits per key"). Default: no key.
	LimitKey string
	// After names tasks that must succeed before the task runs. AfterAny names tasks that must end before it runs, with
	// any outcome (docs/lifecycle.md, "Dependencies"). Default: the task waits for nothing.
	After    *Dependencies
	AfterAny *Dependencies

	// Group is the name of the group that the task belongs to, such as a stage or a campaign. Default: no group.
	Group string

	// ByGroup lets workers that claim only the tasks of one group claim the task (docs/lifecycle.md, "Workers for one
	// group"). Default: they do not find it.
	ByGroup bool

	// Meta is the manager's own data about the task, up to 4 KiB. Default: no data.
	Meta string

	// Owner is the name of the token whose holder may see and change the task (docs/tdf.md, "Tokens"). Default: no
	// token.
	Owner string

	// CorrelationID is your own id of the call that opens the task, to find the call in your logs. Default: no id.
	CorrelationID string

	// StartAfter is the time before which no worker claims the task. Default: the task can be claimed at once.
	StartAfter time.Time

	// EndBefore is the time at which the task expires if it has not been executed before. Default: never, which is
	// Never.Std().
	EndBefore time.Time

	// ClaimBefore is the time at which the task expires if no worker has claimed it. It does not limit a running task.
	// Default: never, which is Never.Std().
	ClaimBefore time.Time

	// Timeout is the maximum run time of a round. Default: Longest, which means no limit.
	Timeout time.Duration

	// FailOn is the condition under which a round fails. Default: FailOnStderr.
	FailOn FailOn

	// MaxFails, MaxTimeouts and MaxLosses are how often the task runs again after a failed, timed out or lost round.
	// Nil means the default: 0, 0 and 3. For example, new(2) allows two more rounds.
	MaxFails    *int
	MaxTimeouts *int
	MaxLosses   *int

	// MaxAttempts is how many rounds may fail, time out or be lost, all together, before the task ends. Default: 0,
	// which means that only the other limits count.
	MaxAttempts *int

	// Backoff is how long the task waits before it runs again after a failed or timed out round. Each further wait is
	// BackoffFactor times as long, but about BackoffMax at the most. Waits vary by up to 20 %. Defaults: 0, which means
	// no wait; 2; and 5 minutes.
	Backoff       *time.Duration
	BackoffFactor float64
	BackoffMax    time.Duration

	// Unique is a key that only one task holds at a time. If a task holds it, Open returns that task. UniqueUntil says
	// how long a task holds its key. Defaults: no key; UntilFinished.
	Unique      string
	UniqueUntil UniqueUntil

	// Generations is how many generations of tasks may come from the task: its program may open tasks, whose programs
	// may open tasks, and so on (docs/lifecycle.md, "Tasks that open tasks"). Default: 1,000.
	Generations *int

	// Fetch has up to 16 patterns of files, such as "out/*.csv", that the worker stores after a round that succeeded
	// (docs/programs.md, "Files that a round brings back"). Default: none.
	Fetch []string

	// Blobs names up to 1,000 blobs that the task needs, as SHA256:BYTES or SHA256:BYTES:PATH (docs/blobs.md). Default:
	// none.
	Blobs []string

	// KeepFinished and KeepArchived are how long the task stays in Redis after it has finished, and after it was
	// archived. Then the server removes it. Default: Longest, which means without a limit. KeepFinished must be above
	// 0.
	KeepFinished *time.Duration
	KeepArchived *time.Duration

	// KeepOutputs is how long the outputs of the finished task stay in Redis. Then the server removes them, and the
	// rest of the task stays. Default: Longest. It must be above 0.
	KeepOutputs *time.Duration
}

// Properties returns the properties of a task. They have the values of d. If a field of d is zero, the property has its
// value in defaults.
func (d Definition) Properties(defaults Properties) Properties {
	d.Fill(&defaults)
	return defaults
}

// Fill changes the properties whose fields in d are not zero.
func (d *Definition) Fill(p *Properties) {
	for i := range PropertyTable {
		PropertyTable[i].define(p, d)
	}
	if d.After != nil {
		p.After = d.After
	}
	if d.AfterAny != nil {
		p.AfterAny = d.AfterAny
	}
}

// Definition returns a definition with these properties. If a property is empty or 0, its field in the definition may
// be zero. If a manager opens a task with the definition, the manager's default replaces this zero.
func (d *Properties) Definition() (to Definition) {
	d.Define(&to)
	return to
}

// Define stores what Definition returns.
func (d *Properties) Define(to *Definition) {
	*to = Definition{After: d.After, AfterAny: d.AfterAny}
	for i := range PropertyTable {
		PropertyTable[i].defined(d, to)
	}
}

// Changes are new values for properties of a task. If a field is nil, its property keeps its value. The group, the
// unique key, the owner and the correlation id of a task cannot change.
type Changes struct {
	Program, Source, Input           *string
	InputEncoding                    *InputEncoding
	StartAfter, EndBefore            *time.Time     // the EndBefore Never.Std() removes the limit
	ClaimBefore                      *time.Time     // Never.Std() removes the limit
	Timeout                          *time.Duration // Longest removes the limit
	MaxFails, MaxTimeouts, MaxLosses *int
	MaxAttempts                      *int // 0 removes the limit
	Backoff, BackoffMax              *time.Duration
	BackoffFactor                    *float64
	KeepFinished, KeepArchived       *time.Duration // Longest removes the limit
	KeepOutputs                      *time.Duration
	Meta                             *string
	FailOn                           *FailOn
	Queue                            *string // "" is the queue of the workers without `queues=`
	Priority                         *int
	Tags                             *[]string
	LimitKey                         *string // "" removes the key
	Resources                        *string // "" means that the task asks for nothing
	MinTime                          *time.Duration
	ByGroup                          *bool
	Generations                      *int
	Fetch                            *[]string // an empty list removes the patterns
}

// Apply returns a changed copy of the properties.
func (c Changes) Apply(d Properties) Properties {
	for i := range PropertyTable {
		if change := PropertyTable[i].change; change != nil {
			change(&d, &c)
		}
	}
	return d
}

// OpenUntil returns the time at which the task expires if it is still open.
func (d *Properties) OpenUntil() Time { return min(d.EndBefore, d.ClaimBefore) }

// Limits for the back-off of a task.
const (
	MaxBackoff       = Seconds(365 * 24 * 60 * 60) // maximum value of backoff and backoff_max: 365 days
	MaxBackoffFactor = 1000                        // maximum value of backoff_factor
)
