package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/hidden"
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

// Signals returns two contexts. The first SIGTERM, SIGINT or SIGHUP ends the first context, and the second signal
// ends the second context. A third signal kills the process. A terminal that is closed sends SIGHUP, perhaps twice,
// so each further SIGHUP is ignored. A process that ignores SIGHUP, as nohup asks, continues to do so.
func Signals() (first, second context.Context) {
	first, endFirst := context.WithCancel(context.Background())
	second, endSecond := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		endFirst()
		for <-signals == syscall.SIGHUP { // not counted
		}
		signal.Reset(syscall.SIGTERM, syscall.SIGINT)
		endSecond()
	}()
	return first, second
}

// Hide hides the environment and the memory of this process from other processes of its user, such as a worker's
// programs. It ignores errors. Call it first in main.
func Hide() { _ = hidden.Process() }
