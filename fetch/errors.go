package fetch

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf"
)

// A Step is the part of fetching that went wrong (docs/programs.md, "Errors").
type Step string

// The steps, in their order.
const (
	StepCheck    Step = "check" // of what is in the program's directory already
	StepWait     Step = "wait"  // for another worker that fetches the same program
	StepDownload Step = "download"
	StepRsync    Step = "rsync"
	StepRedis    Step = "redis"
	StepUnpack   Step = "unpack"
	StepInstall  Step = "install"
	StepSetup    Step = "setup.sh"
)

// An Error says which source could not be fetched, in which step, and why. It never contains
// credentials. It wraps the cause: context.Canceled, context.DeadlineExceeded for the
// fetch_timeout, [ErrOtherSource], and what the file system and the network said.
type Error struct {
	Source string // without credentials
	Step   Step
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("fetching %s: %s: %v", e.Source, e.Step, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Local says whether the same source might well be had on another host: what is missing or full
// is this one, or its way to the source (docs/programs.md, "Errors").
func (e *Error) Local() bool {
	var number syscall.Errno
	switch {
	case errors.Is(e.Err, ErrOtherSource), errors.As(e.Err, new(status)):
		return false
	case e.Step == StepWait, e.Step == StepSetup:
		return true
	}
	return errors.As(e.Err, &number) || errors.As(e.Err, new(here)) || errors.As(e.Err, new(temporary)) || errors.As(e.Err, new(timeoutError))
}

// here marks an error that is about this host.
type here struct{ err error }

func (h here) Error() string { return h.err.Error() }
func (h here) Unwrap() error { return h.err }

// ErrOtherSource is wrapped when a program's directory holds what came from another source than
// the one asked for (docs/programs.md, "The record").
var ErrOtherSource = errors.New("holds another source's program")

// failed makes an *Error of what a step returned. When the context ended, that is the reason,
// and not what the step made of it.
func failed(ctx context.Context, src tdf.Source, step Step, err error) error {
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

// timeoutError is the cause of a context that fetch_timeout ended.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string {
	return fmt.Sprintf("took longer than %g s (fetch_timeout)", e.after.Seconds())
}

func (timeoutError) Unwrap() error { return context.DeadlineExceeded }
