package main

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/command"
)

// Exit statuses (docs/tdf.md, "Exit status").
const (
	statusDone        = 0
	statusFailed      = 1
	statusRefused     = 2 // the arguments or the configuration are invalid, or Redis refuses them
	statusProblems    = 3 // the command ran, and found problems or skipped tasks
	statusInterrupted = 130
)

// errProblems makes a command exit with statusProblems. The command must print the reason before it returns errProblems.
var errProblems = errors.New("the command found problems or skipped tasks")

// A partlyError is an error after a part of the work was done. So its exit status is not statusRefused.
type partlyError struct{ error }

func (e partlyError) Unwrap() error { return e.error }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (partlyError) Code() tdf.Code { return tdf.CodeFailed }

// status prints the error of a command, and returns the command's exit status.
func (a *app) status(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, errProblems):
		return statusProblems
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return statusInterrupted
	}
	a.say("tdf: %v", err)
	if !a.parsed || command.Refused(err) {
		return statusRefused
	}
	return statusFailed
}
