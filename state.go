package tdf

import "github.com/tdf-framework/tdf/internal/task"

// A State is a state of a task (docs/lifecycle.md). Its method Settled reports whether the task has an outcome, and
// Finished whether the task runs again only if a user retries it.
type State = task.State

// The states, in the order of a task's life.
const (
	Open      = task.Open      // a worker may claim the task, at the latest when what it waits for is there
	Running   = task.Running   // a worker has claimed the task
	Executed  = task.Executed  // the program has ended, and the server decides what this means
	Succeeded = task.Succeeded // the last round succeeded
	Failed    = task.Failed    // too many rounds failed or were lost, or a task that it waits for did not succeed
	TimedOut  = task.TimedOut  // too many rounds were longer than the timeout
	Expired   = task.Expired   // the task was cancelled, or it is too late for it
	Archived  = task.Archived  // the manager has handled the result
)

// Counts has the number of tasks in each state. Its methods add the numbers of several states: Total, Unfinished,
// Finished, Failures, and Waiting for the finished tasks that are not archived.
type Counts = task.Counts
