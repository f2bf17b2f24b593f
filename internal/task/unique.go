package task

import (
	"fmt"
)

// UniqueUntil says how long a task holds its unique key (docs/lifecycle.md, "Unique tasks").
type UniqueUntil string

// The times until which a task holds its unique key.
const (
	UntilFinished UniqueUntil = "finished" // until the task has finished; this is the default
	UntilArchived UniqueUntil = "archived" // until the task is archived or removed
)

// HoldingStates returns the states in which a task holds its unique key.
func (u UniqueUntil) HoldingStates() []State {
	if u == UntilArchived {
		return States[:7:7]
	}
	return UnfinishedStates
}

// A UniqueError means that another task holds the unique key of the task.
type UniqueError struct {
	ID     int64 // the task that cannot be reopened
	Holder int64 // the task that holds the key
}

func (e *UniqueError) Error() string {
	return fmt.Sprintf("task %d: task %d holds its unique key", e.ID, e.Holder)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*UniqueError) Code() Code { return CodeTaken }
