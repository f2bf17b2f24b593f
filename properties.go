package tdf

// FailOn says what makes a round fail (docs/lifecycle.md, "What makes a round fail").
type FailOn string

// The three rules. A program that a signal ended, or that could not be run, has failed under each.
const (
	FailOnStderr FailOn = "stderr" // it printed something to stderr: the default
	FailOnExit   FailOn = "exit"   // its exit status is not 0
	FailOnAny    FailOn = "any"    // either
)

// A Properties is what a manager says of a task: what to run, when, and how much to forgive.
// [Defaults] fills in the defaults; a Properties made otherwise must set every property.
type Properties struct {
	Program string // the program's name, and its directory on a worker
	Source  string // where workers get the program from (docs/programs.md)
	Input   string // the arguments of run.sh, split into words as a POSIX shell does

	StartAfter Time    // not claimed earlier; 0: at once
	EndBefore  Time    // expired unless executed by then; Never: no limit
	Timeout    Seconds // how long one round may run; Forever: no limit

	MaxFails    int // failed rounds that are forgiven
	MaxTimeouts int // timed out rounds that are forgiven
	MaxLosses   int // rounds lost with their worker that are forgiven

	Group  string // what belongs together: a stage, a campaign; "" for none
	Meta   string // the manager's own data, up to 4 KiB, never looked into
	FailOn FailOn
}

// Defaults returns the definition of a task with the defaults of a project without
// configuration: no limits of time, nothing forgiven but three losses, no group, and
// failure judged by stderr.
func Defaults(program, source, input string) Properties {
	return Properties{
		Program: program, Source: source, Input: input,
		EndBefore: Never, Timeout: Forever, MaxLosses: 3, FailOn: FailOnStderr,
	}
}
