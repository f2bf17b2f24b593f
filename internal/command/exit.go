package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

// Exit statuses.
const (
	StatusStopped = 0
	StatusFailed  = 1
	StatusRefused = 2 // see Refused
)

// Status returns the exit status of a command that ended with err, and writes err to stderr. If ctx has ended, the
// command was stopped by a signal, and only errors of [Refused] count.
func Status(ctx context.Context, command string, err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, ErrAnswered) || ctx.Err() != nil && !Refused(err) {
		return StatusStopped
	}
	fmt.Fprintf(stderr, "%s: %v\n", command, err)
	if Refused(err) {
		return StatusRefused
	}
	return StatusFailed
}

// Refused reports whether a restart would fail again, because the arguments or the configuration are invalid, Redis
// refuses the login, or the worker's name is taken.
func Refused(err error) bool {
	var usage *UsageError
	var configuration *config.Error
	var redis *redisstate.RefusedError
	var taken *redisstate.NameTakenError
	return errors.As(err, &usage) || errors.As(err, &configuration) || errors.As(err, &redis) || errors.As(err, &taken)
}
