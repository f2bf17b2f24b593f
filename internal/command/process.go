package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/hidden"
	"github.com/tdf-framework/tdf/internal/task"
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
	code := task.CodeOf(err)
	return code == task.CodeInvalid || code == task.CodeRefused
}

// Signals returns two contexts. The first SIGTERM, SIGINT or SIGHUP ends the first context, and the second signal
// ends the second context. A third signal kills the process. A terminal that is closed sends SIGHUP, perhaps twice,
// so each further SIGHUP is ignored. A process that ignores SIGHUP, as nohup asks, continues to do so. If stderr is a
// file, SIGHUP ends nothing: it opens the file again (docs/operations.md, "Log files").
func Signals() (first, second context.Context) {
	first, endFirst := context.WithCancel(context.Background())
	second, endSecond := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	switch path := logFile(); {
	case signal.Ignored(syscall.SIGHUP):
	case path == "":
		signal.Notify(signals, syscall.SIGHUP)
	default:
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		go reopenOn(hangups, path)
	}
	go func() {
		firstOf(signals, func() { time.Sleep(atOnce) })
		endFirst()
		for <-signals == syscall.SIGHUP { // not counted
		}
		signal.Reset(syscall.SIGTERM, syscall.SIGINT)
		endSecond()
	}()
	return first, second
}

// atOnce is how long the copies of a signal may take: timeout(1) sends one to its command, and one to its whole group.
const atOnce = 50 * time.Millisecond

// firstOf waits for a signal, and drops those that come while the function wait runs.
func firstOf(signals <-chan os.Signal, wait func()) {
	<-signals
	wait()
	for {
		select {
		case <-signals:
		default:
			return
		}
	}
}

// logFile returns the path of the file that stderr is, or "" if stderr is a terminal, a pipe or the like.
func logFile() string {
	info, err := os.Stderr.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	path, _ := os.Readlink("/proc/self/fd/2") // only Linux has it; after a rename, it would be the new name
	return path
}

// reopenOn makes stderr, and stdout if it was the same file, the file that has the path now, at each signal.
func reopenOn(signals <-chan os.Signal, path string) {
	out, _ := os.Readlink("/proc/self/fd/1")
	for range signals {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
		if err != nil {
			fmt.Fprintln(os.Stderr, "the log file cannot be opened again:", err)
			continue
		}
		err = unix.Dup2(int(f.Fd()), 2)
		if out == path {
			err = errors.Join(err, unix.Dup2(int(f.Fd()), 1))
		}
		if err := errors.Join(err, f.Close()); err != nil {
			fmt.Fprintln(os.Stderr, "the log file cannot be opened again:", err)
		}
	}
}

// Hide hides the environment and the memory of this process from other processes of its user, such as a worker's
// programs. It ignores errors. Call it first in main.
func Hide() { _ = hidden.Process() }
