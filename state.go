package tdf

// A State is where a task stands in its life: the name of the one list that holds its id
// (docs/lifecycle.md).
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

// None is where a task comes from that is being opened.
const None State = ""

// States lists all states in the order of a task's life.
var States = []State{Open, Running, Executed, Succeeded, Failed, TimedOut, Expired, Archived}

// Settled reports whether s is one of the four endings that wait for the manager.
func (s State) Settled() bool {
	return s == Succeeded || s == Failed || s == TimedOut || s == Expired
}

// Finished reports whether a task in s runs no more, unless it is opened again by hand.
func (s State) Finished() bool { return s.Settled() || s == Archived }
