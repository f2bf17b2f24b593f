package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tdf-framework/tdf"
)

// Exit statuses of tdf-server and tdf-worker.
const (
	StatusStopped = 0
	StatusFailed  = 1
	StatusRefused = 2 // for errors for which [Refused] returns true
)

// Status writes the error of a command to stderr, and returns the command's exit status. If a signal has ended ctx,
// Status ignores an error for which [Refused] returns false.
func Status(ctx context.Context, command string, err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, errAnswered) || ctx.Err() != nil && !Refused(err) {
		return StatusStopped
	}
	fmt.Fprintf(stderr, "%s: %v\n", command, err)
	if Refused(err) {
		return StatusRefused
	}
	return StatusFailed
}

// Refused reports whether the same error would occur again after a restart. It returns true if the arguments or the
// configuration are invalid, if Redis refuses the login, or if another worker has the worker's name.
func Refused(err error) bool {
	code := tdf.CodeOf(err)
	return code == tdf.CodeInvalid || code == tdf.CodeRefused
}
