package task

import (
	"fmt"
	"slices"
	"strings"
)

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

// States are all states in the order of a task's life. The others are parts of it.
var (
	States                           = []State{Open, Running, Executed, Succeeded, Failed, TimedOut, Expired, Archived}
	UnfinishedStates, FinishedStates = States[:3:3], States[3:]
	SettledStates                    = States[3:7:7]
)

// Settled reports whether s is succeeded, failed, timed_out or expired. A task in one of these states waits until a
// manager archives it.
func (s State) Settled() bool { return slices.Contains(SettledStates, s) }

// Finished reports whether a task in state s is finished or archived. From these states, a task runs again only if a
// user retries it.
func (s State) Finished() bool { return s.Settled() || s == Archived }

// Counts holds the number of tasks in each state.
type Counts map[State]int64

// Total returns the number of all tasks.
func (c Counts) Total() int64 {
	var total int64
	for _, n := range c {
		total += n
	}
	return total
}

// Unfinished returns the number of open, running and executed tasks.
func (c Counts) Unfinished() int64 { return c[Open] + c[Running] + c[Executed] }

// Waiting returns the number of finished tasks that are not archived.
func (c Counts) Waiting() int64 { return c[Succeeded] + c.Failures() }

// Failures returns the number of tasks that failed, timed out or expired, without archived ones.
func (c Counts) Failures() int64 { return c[Failed] + c[TimedOut] + c[Expired] }

// Finished returns the number of finished tasks, archived ones included.
func (c Counts) Finished() int64 { return c.Total() - c.Unfinished() }

// String returns the number of tasks in each state that has tasks, such as "open 4 running 2". The states come in the
// order of a task's life.
func (c Counts) String() string {
	var parts []string
	for _, state := range States {
		if c[state] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", state, c[state]))
		}
	}
	return strings.Join(parts, " ")
}
