package worker

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/fetch"
)

// Permanent marks an error of a [Handler] or [Runner] as final: the task fails, even if max_fails allows more rounds.
// Use it for an error that every later round would meet, such as an invalid input. A user can still retry the task
// (docs/lifecycle.md, "Failed for good"). Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{marked{err}}
}

// Later returns an error with which a [Handler] or [Runner] puts its task off. The worker releases the task. After d,
// any worker may claim the task again; after the first round, d is at least a second. The round counts as a release,
// not as a failure. The task's log shows the text of err. err may be nil.
//
// Each delay starts a new round, and a task has at most 100,000 rounds. Only the last 4 KiB of the round's output are
// kept. The checkpoint, the progress and the updates are kept (docs/lifecycle.md, "Put off").
func Later(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("put off by its handler")
	}
	return &LaterError{d, err}
}

// Unfit marks an error as the fault of this host: another worker may be able to run the task. The worker releases the
// task. After three such releases the round fails (docs/lifecycle.md, "Released rounds"). Unfit(nil) is nil.
func Unfit(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("the worker's disk is full: %w", err)
	}
	return &UnfitError{marked{err}}
}

// A marked error has the text and the code of the error that was marked.
type marked struct{ Err error }

func (e *marked) Error() string { return e.Err.Error() }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (e *marked) Code() tdf.Code { return tdf.CodeOf(e.Err) }

// Unwrap returns the error that was marked.
func (e *marked) Unwrap() error { return e.Err }

// A PermanentError is an error that [Permanent] has marked.
type PermanentError struct{ marked }

// An UnfitError is an error that [Unfit] has marked.
type UnfitError struct{ marked }

// A LaterError is the error that [Later] returns.
type LaterError struct {
	After time.Duration
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*LaterError) Code() tdf.Code { return tdf.CodeUnavailable }

// Unwrap returns the reason for the delay.
func (e *LaterError) Unwrap() error { return e.Err }

func isPermanent(err error) bool { return errors.As(err, new(*PermanentError)) }

func isLater(err error) bool { return err != nil && errors.As(err, new(*LaterError)) }

func isUnfit(err error) bool { return errors.As(err, new(*UnfitError)) }

// unfitFetch marks the error of a fetch as [Unfit] if the fetch may succeed on another host.
func unfitFetch(err error) error {
	var failed *fetch.Error
	if errors.As(err, &failed) && failed.Local() {
		return &UnfitError{marked{err}}
	}
	return err
}
