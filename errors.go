package tdf

import (
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Code is the kind of an error (docs/manager.md, "Codes of errors"). The exit statuses of the commands follow from
// it.
type Code = task.Code

// The codes.
const (
	CodeInvalid             = task.CodeInvalid     // the request is wrong, whatever Redis contains; nothing was done
	CodeNotFound            = task.CodeNotFound    // the object does not exist
	CodeTaken               = task.CodeTaken       // another object has the name, the id, the key or the address
	CodeConflict            = task.CodeConflict    // the present state of the object forbids the action
	CodeExpired             = task.CodeExpired     // the object existed, and was removed because it was old
	CodeDamaged             = task.CodeDamaged     // data that TDF reads are not as TDF writes them
	CodeFull                = task.CodeFull        // there is no space: remove something, or raise a limit
	CodeUnavailable         = task.CodeUnavailable // the same request may succeed later
	CodeUnknown             = task.CodeUnknown     // the change may have been made, or a failure of Redis may undo it
	CodeForbidden           = task.CodeForbidden   // the right to do this is missing
	CodeTooManyRequirements = task.CodeTooManyRequirements
	CodeRefused             = task.CodeRefused   // this component is refused, and a new start does not help
	CodeCancelled           = task.CodeCancelled // the caller has cancelled the call
	CodeFailed              = task.CodeFailed    // any other error
)

// CodeOf returns the code of an error. It returns "" if err is nil.
func CodeOf(err error) Code { return task.CodeOf(err) }

// Errors with more than a text. Use [errors.As] to find them.
type (
	// A PropertyError means that a property of a task is invalid.
	PropertyError = task.PropertyError
	// A QueryError is the reason why a query of tasks or its cursor is invalid.
	QueryError = task.QueryError
	// A StateError means that a task's state forbids the change. The task has not been changed.
	StateError = rules.StateError
	// A GroupError means that the state of a group does not allow a call. Its Err is one of the errors below.
	GroupError = task.GroupError
	// A UniqueError means that another task holds the unique key of a task.
	UniqueError = task.UniqueError
	// A TasksLimitError means that the namespace would have more tasks than its setting max_tasks allows.
	TasksLimitError = task.TasksLimitError
)

// Use [errors.Is] to find these errors.
var (
	ErrNoTask          = task.ErrNoTask     // there is no such task
	ErrUnchanged       = rules.ErrUnchanged // the task already has these values
	ErrNeeded          = rules.ErrNeeded    // tasks that wait need this one
	ErrLastRound       = rules.ErrLastRound // the task can have no further round
	ErrGroupEmpty      = task.ErrGroupEmpty
	ErrGroupClosed     = task.ErrGroupClosed
	ErrGroupDecided    = task.ErrGroupDecided
	ErrGroupNotClosed  = task.ErrGroupNotClosed
	ErrGroupUnfinished = task.ErrGroupUnfinished
)
