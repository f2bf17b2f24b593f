package tdf

// A State is a state of a task (docs/lifecycle.md). In Redis, the list with the name of the state holds the task's id.
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

// None is the state of a task that does not exist yet, or that has been removed.
const None State = ""

// States are all states in the order of a task's life.
var States = []State{Open, Running, Executed, Succeeded, Failed, TimedOut, Expired, Archived}

// Settled reports whether s is succeeded, failed, timed_out or expired. A task in one of these states waits until a
// manager archives it.
func (s State) Settled() bool {
	return s == Succeeded || s == Failed || s == TimedOut || s == Expired
}

// Finished reports whether a task in state s is finished or archived. From these states, a task runs again only if a
// user retries it.
func (s State) Finished() bool { return s.Settled() || s == Archived }
