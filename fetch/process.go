package fetch

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// waitDelay is the time for which runGroup waits for more output after the end of cmd. It waits only if a background
// process keeps the pipe open.
const waitDelay = 2 * time.Second

// runGroup runs cmd as a user, in a new session, so that its processes cannot ask questions on the worker's terminal.
// If the user is nil, cmd runs as the user of this process. runGroup
// kills the process group when cmd or its context ends. It returns the last lines of the output. The error contains
// the exit status or the signal.
func runGroup(cmd *exec.Cmd, as *User) (string, error) {
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = waitDelay
	cmd.SysProcAttr = processAttr()
	if as != nil {
		cmd.SysProcAttr.Credential = &as.Credential
	}
	cmd.Cancel = func() error { return killGroup(cmd) }
	// The goroutine keeps its thread, because Pdeathsig kills the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if cmd.Process != nil {
		_ = killGroup(cmd)
	}
	if errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		err = nil
	}
	return out.lines(), err
}

func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// environment returns the environment variables with the given names that are set in this process.
func environment(names []string) []string {
	env := make([]string, 0, len(names))
	for _, name := range names {
		if value, found := os.LookupEnv(name); found {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Limits for a process's output: tailBytes are kept, and errors show at most tailLines lines of lineRunes characters.
const (
	tailBytes = 4096
	tailLines = 5
	lineRunes = 200
)

// tail keeps the last tailBytes bytes that were written to it.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// lines returns the last lines, joined to one line. It shortens long lines and replaces control characters.
func (t *tail) lines() string {
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(string(t.buf), "\uFFFD")) {
		if line = printable(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-tailLines):], "; ")
}

func printable(line string) string {
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, line))
	if r := []rune(line); len(r) > lineRunes { // shorten the middle, which is usually a path
		line = string(r[:lineRunes/2]) + "…" + string(r[len(r)-lineRunes/2:])
	}
	return line
}
