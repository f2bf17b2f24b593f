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
	StatusRefused = 2 // the arguments, the configuration, or what Redis says to it
)

// Status returns the exit status for what a command ended with, and writes the error to stderr.
// An error of a command that was told to stop, by ctx, is none.
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

// Refused says whether starting again as it is would not help: the arguments are wrong, the configuration, or Redis
// refuses it.
func Refused(err error) bool {
	var usage *UsageError
	var configuration *config.Error
	var redis *redisstate.RefusedError
	var taken *redisstate.NameTakenError
	return errors.As(err, &usage) || errors.As(err, &configuration) || errors.As(err, &redis) || errors.As(err, &taken)
}
