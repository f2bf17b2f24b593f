package tdf

// A State is a state of a task (docs/lifecycle.md). It is also the name of the list in Redis that holds the task's id.
type State string

// The states, in the order of a task's life.
const (
	Open      State = "open"
	Running   State = "running"
	Executed  State = "executed"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	TimedOut  State = "timed_out"
	Expired   State = "expired"
	Archived  State = "archived"
)

// None is the state of a task that does not exist: before it is opened, and after it is removed.
const None State = ""

// States are all states in the order of a task's life.
var States = []State{Open, Running, Executed, Succeeded, Failed, TimedOut, Expired, Archived}

// Settled reports whether s is succeeded, failed, timed_out or expired. The server has settled a task in these states, and
// the task waits for its manager.
func (s State) Settled() bool {
	return s == Succeeded || s == Failed || s == TimedOut || s == Expired
}

// Finished reports whether a task in state s has ended, so that only a user can make it run again. Archived tasks are
// finished, too.
func (s State) Finished() bool { return s.Settled() || s == Archived }
