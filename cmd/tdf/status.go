package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tdf-framework/tdf/internal/command"
)

// Exit statuses (docs/tdf.md, "Exit status").
const (
	statusDone        = 0
	statusFailed      = 1
	statusRefused     = 2   // the arguments, the configuration, or what Redis says to it
	statusNotWell     = 3   // it did what it was asked to, and what it found is not well
	statusInterrupted = 130 // by a signal
)

// errNotWell ends a command that has said already what is not well.
var errNotWell = errors.New("not well")

// usage is an error in the arguments.
func usage(format string, args ...any) error {
	return &command.UsageError{Problem: fmt.Sprintf(format, args...)}
}

// status returns the exit status, and says what went wrong.
func (a *app) status(told context.Context, err error) int {
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, errNotWell):
		return statusNotWell
	case told.Err() != nil && errors.Is(err, context.Cause(told)):
		return statusInterrupted
	}
	a.say("tdf: %v", err)
	var query *queryError
	if !a.begun || command.Refused(err) || errors.As(err, &query) {
		return statusRefused
	}
	return statusFailed
}
