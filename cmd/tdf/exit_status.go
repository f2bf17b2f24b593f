package main

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/manager"
)

// Exit statuses (docs/tdf.md, "Exit status").
const (
	statusDone        = 0
	statusFailed      = 1
	statusRefused     = 2 // the arguments or the configuration are invalid, or Redis refuses them
	statusNotWell     = 3 // the command ran, and found problems or skipped tasks
	statusInterrupted = 130
)

// errNotWell ends a command with statusNotWell. The command has printed the reason.
var errNotWell = errors.New("not well")

// status returns the exit status of a command that ended with err. It prints the error.
func (a *app) status(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, errNotWell):
		return statusNotWell
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return statusInterrupted
	}
	a.say("tdf: %v", err)
	var query *manager.QueryError
	if !a.parsed || command.Refused(err) || errors.As(err, &query) {
		return statusRefused
	}
	return statusFailed
}
