package cli

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/command"
)

// Exit statuses (docs/tdf.md, "Exit status").
const (
	statusDone        = 0
	StatusFailed      = 1
	StatusRefused     = 2 // the arguments or the configuration are invalid, or Redis refuses them
	statusProblems    = 3 // the command ran, and found problems or skipped tasks
	StatusInterrupted = 130
)

// ErrProblems makes a command exit with statusProblems. The command must print the reason before it returns errProblems.
var ErrProblems = errors.New("the command found problems or skipped tasks")

// A PartlyError is an error after a part of the work was done. So its exit status is not statusRefused.
type PartlyError struct{ Err error }

func (e PartlyError) Error() string { return e.Err.Error() }

func (e PartlyError) Unwrap() error { return e.Err }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (PartlyError) Code() tdf.Code { return tdf.CodeFailed }

// status prints the error of a command, and returns the command's exit status.
func (a *App) status(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, ErrProblems):
		return statusProblems
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return StatusInterrupted
	}
	a.Say("tdf: %v", err)
	if !a.parsed || command.Refused(err) {
		return StatusRefused
	}
	return StatusFailed
}
