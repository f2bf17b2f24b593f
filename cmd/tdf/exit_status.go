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

// errNotWell makes a command exit with statusNotWell. The command must have printed the reason before.
var errNotWell = errors.New("not well")

// status prints err, and returns the exit status of a command that returned err.
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
