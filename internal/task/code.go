package task

import (
	"context"
	"errors"
	"net"
)

// A Code is the kind of an error (docs/manager.md, "Codes of errors"). The exit statuses of the commands follow from
// it.
type Code string

// The codes.
const (
	CodeInvalid     Code = "invalid"     // the request is wrong, whatever Redis contains; nothing was done
	CodeNotFound    Code = "not_found"   // the object does not exist
	CodeTaken       Code = "taken"       // another object has the name, the id, the key or the address
	CodeConflict    Code = "conflict"    // the present state of the object forbids the action
	CodeExpired     Code = "expired"     // the object existed, and was removed because it was old
	CodeDamaged     Code = "damaged"     // data that TDF reads are not as TDF writes them
	CodeFull        Code = "full"        // there is no space: remove something, or raise a limit
	CodeUnavailable Code = "unavailable" // the same request may succeed later
	CodeUnknown     Code = "unknown"     // the change may have been made, or a failure of Redis may undo it
	CodeForbidden   Code = "forbidden"   // the right to do this is missing
	// the tasks would have too many different requirements (docs/lifecycle.md, "Requirements")
	CodeTooManyRequirements Code = "too_many_requirements"
	// Redis, or a worker of the same name, refuses this component; a new start does not help
	CodeRefused   Code = "refused"
	CodeCancelled Code = "cancelled" // the caller has cancelled the call
	CodeFailed    Code = "failed"    // any other error
)

// A Coded error says which code it has. If an error wraps several Coded errors, the outermost of them counts.
type Coded interface {
	error
	Code() Code
}

// CodeOf returns the code of an error. It returns "" if err is nil.
func CodeOf(err error) Code {
	var coded Coded
	switch {
	case err == nil:
		return ""
	case errors.As(err, &coded):
		return coded.Code()
	case errors.Is(err, context.Canceled):
		return CodeCancelled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, new(*net.OpError)),
		errors.As(err, new(*net.DNSError)):
		return CodeUnavailable
	}
	return CodeFailed
}

// NewError returns an error with a code and a text, for variables such as [ErrNoTask].
func NewError(code Code, text string) error { return &codedError{code, text} }

type codedError struct {
	code Code
	text string
}

func (e *codedError) Error() string { return e.text }

func (e *codedError) Code() Code { return e.code }
