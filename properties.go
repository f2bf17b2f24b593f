package tdf

// FailOn is the rule by which a round fails (docs/lifecycle.md, "What makes a round fail").
type FailOn string

// The rules for failure. Under every rule, a round has also failed if a signal ended its program or if the program could
// not be run.
const (
	FailOnStderr FailOn = "stderr" // the program printed something to stderr; the default
	FailOnExit   FailOn = "exit"   // the exit status is not 0
	FailOnAny    FailOn = "any"    // text on stderr, or an exit status other than 0
)

// Properties are what a manager sets when it opens a task: the program, its input, and the task's limits. Use [Defaults]
// to fill in the defaults. The zero value is invalid.
type Properties struct {
	Program string // the program's name, and its directory on a worker
	Source  string // where workers get the program from (docs/programs.md)
	Input   string // the arguments of run.sh, split into words as a POSIX shell does

	StartAfter Time    // earliest time at which a worker may claim the task; 0: at once
	EndBefore  Time    // the task expires if it is not executed by then; Never: no limit
	Timeout    Seconds // maximum run time of a round; Forever: no limit

	MaxFails    int // how many failed rounds are tolerated
	MaxTimeouts int // how many timed out rounds are tolerated
	MaxLosses   int // how many lost rounds are tolerated

	Group  string // the group (campaign) of the task; "": none
	Meta   string // the manager's own data, up to 4 KiB; TDF does not interpret it
	FailOn FailOn
}

// Defaults returns the properties of a task with the built-in defaults: no time limits, no failed or timed out round
// tolerated, three lost rounds tolerated, no group, and [FailOnStderr].
func Defaults(program, source, input string) Properties {
	return Properties{
		Program: program, Source: source, Input: input,
		EndBefore: Never, Timeout: Forever, MaxLosses: 3, FailOn: FailOnStderr,
	}
}
