package fetch

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Step is a step of a fetch (docs/programs.md, "Errors").
type Step string

// The steps of a fetch, in their order.
const (
	StepCheck    Step = "check" // check the existing directory of the program
	StepWait     Step = "wait"  // wait for another worker that fetches the same program
	StepDownload Step = "download"
	StepRsync    Step = "rsync"
	StepRedis    Step = "redis"
	StepUnpack   Step = "unpack"
	StepInstall  Step = "install"
	StepSetup    Step = "setup.sh"
	StepCopy     Step = "copy" // copy the program's directory for a slot
)

// An Error is the failure of a fetch. It never contains credentials. It wraps the cause, such as context.Canceled,
// context.DeadlineExceeded, [ErrOtherSource], or an error of the file system or the network.
type Error struct {
	Source string // without credentials
	Step   Step   // the step that failed
	Err    error  // the cause
}

func (e *Error) Error() string {
	return fmt.Sprintf("fetching %s: %s: %v", e.Source, e.Step, e.Err)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (e *Error) Code() tdf.Code { return tdf.CodeOf(e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Local reports whether this host caused the error, for example if its disk is full or if it cannot connect to the
// source. Another host may then be able to fetch the source (docs/programs.md, "Errors").
func (e *Error) Local() bool {
	var number syscall.Errno
	switch {
	case errors.Is(e.Err, ErrOtherSource), errors.As(e.Err, new(status)):
		return false
	case e.Step == StepWait, e.Step == StepSetup:
		return true
	}
	return errors.As(e.Err, &number) || errors.As(e.Err, new(localError)) || errors.As(e.Err, new(damagedError)) ||
		errors.As(e.Err, new(temporary)) || errors.As(e.Err, new(timeoutError))
}

// localError marks an error that this host caused, and not the source.
type localError struct{ err error }

func (e localError) Error() string { return e.err.Error() }
func (e localError) Unwrap() error { return e.err }

// ErrOtherSource means that the program in the directory was fetched from another source (docs/programs.md, "The
// record").
var ErrOtherSource = task.NewError(tdf.CodeConflict, "holds another source's program")

// failed returns an *Error about a step. It wraps the step's error, or the cause of ctx if ctx has ended.
func failed(ctx context.Context, src task.Source, step Step, err error) error {
	var done *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &done):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		err = fmt.Errorf("the worker's disk is full: %w", err)
	}
	return &Error{Source: src.String(), Step: step, Err: err}
}

// timeoutError is the cause of a fetch's context when Timeout has passed.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string {
	return fmt.Sprintf("took longer than %g s", e.after.Seconds())
}

func (timeoutError) Unwrap() error { return context.DeadlineExceeded }
