package tdf

// FailOn is the rule that decides whether a round has failed (docs/lifecycle.md, "What makes a round fail").
type FailOn string

// The rules for failure. Under each rule, a round has also failed if a signal ended its program or if the program could
// not be run.
const (
	FailOnStderr FailOn = "stderr" // the round fails if the program printed something to stderr; this is the default
	FailOnExit   FailOn = "exit"   // the round fails if the exit status is not 0
	FailOnAny    FailOn = "any"    // the round fails if there is text on stderr or if the exit status is not 0
)

// Properties are the part of a task that a manager sets when it opens the task: the program, its input, and the task's
// limits. Use [Defaults] to fill in the defaults. The zero value is invalid.
type Properties struct {
	Program string // the program's name, and its directory on a worker
	Source  string // where workers get the program from (docs/programs.md); "" if a handler of a worker runs the program
	Input   string // the arguments of run.sh, split into words as a POSIX shell does

	StartAfter Time    // earliest time at which a worker may claim the task; 0 means at once
	EndBefore  Time    // latest time at which the program must have ended; Never means no limit
	Timeout    Seconds // maximum run time of a round; Forever means no limit

	MaxFails    int // maximum number of failed rounds after which the task runs again
	MaxTimeouts int // maximum number of timed out rounds after which the task runs again
	MaxLosses   int // maximum number of lost rounds after which the task runs again

	// After a failed or timed out round, the task waits before it runs again. The n-th wait is about Backoff times
	// BackoffFactor to the power of n-1, and about BackoffMax at the most (docs/lifecycle.md, "Back-off").
	Backoff       Seconds // the first wait; 0 means that the task does not wait
	BackoffFactor float64 // from 1 up
	BackoffMax    Seconds

	// The server removes a task that has been finished for KeepFinished, or archived for KeepArchived (docs/lifecycle.md,
	// "Retention"). Forever means that the task stays.
	KeepFinished, KeepArchived Seconds

	// The server removes the outputs of a task that has been finished for KeepOutputs. Forever means that they stay as long
	// as the task.
	KeepOutputs Seconds

	// Workers claim the tasks with a higher Priority first. Only a worker that serves the Queue and offers all of the Tags
	// claims the task (docs/lifecycle.md, "Queues").
	Queue    string   // "" for the queue of the workers without `queues=`
	Priority int      // from -2147483648 to 2147483647; the default is 0
	Tags     []string // at most 16

	// The tasks with the same LimitKey share a limit: how many of them run at once, and how often one of them starts
	// (docs/lifecycle.md, "Limits per key").
	LimitKey string // "" if the task needs none; at most 200 bytes

	// The task runs only after the tasks of After have succeeded, and the tasks of AfterAny have ended (docs/lifecycle.md,
	// "Dependencies"). Nil means that it does not wait. Of a task in Redis, they may not have been read.
	After, AfterAny *Dependencies

	Group  string // the group (campaign) of the task; "" if it has no group
	Meta   string // the manager's own data, up to 4 KiB; TDF does not interpret it
	FailOn FailOn

	// Only one task at a time holds a unique key. While a task holds it, opening another task with this key returns that
	// task instead (docs/lifecycle.md, "Unique tasks").
	Unique      string // the key; "" if the task needs none
	UniqueUntil UniqueUntil

	// Apart keeps the task from workers of the original TDF, if they cannot fetch its program. It is no property in Redis: the
	// setting original_workers of the namespace decides.
	Apart bool
}

// Defaults returns the properties of a task with the built-in defaults: no time limits, MaxLosses 3, no back-off, no
// retention period, no group, and [FailOnStderr]. With MaxFails and MaxTimeouts 0, the first failure or timeout ends the task.
func Defaults(program, source, input string) Properties {
	return Properties{
		Program: program, Source: source, Input: input,
		EndBefore: Never, Timeout: Forever, MaxLosses: 3, BackoffFactor: 2, BackoffMax: 300,
		KeepFinished: Forever, KeepArchived: Forever, KeepOutputs: Forever, FailOn: FailOnStderr, UniqueUntil: UntilFinished,
	}
}
