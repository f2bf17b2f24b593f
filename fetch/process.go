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

// waitDelay is how long output is waited for that a background process holds open.
const waitDelay = 2 * time.Second

// runGroup runs cmd in a session of its own, so that nothing it starts can ask a question on the
// worker's terminal, and ends all of its process group when cmd's context or cmd itself ends.
// It returns the last lines of what was printed; the error has the exit status or the signal.
func runGroup(cmd *exec.Cmd) (string, error) {
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = waitDelay
	cmd.SysProcAttr = processAttr()
	cmd.Cancel = func() error { return killGroup(cmd) }
	// Where the kernel ends a child with its parent, the parent is the thread that started it.
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

// environment is built from an allow-list.
func environment(names []string) []string {
	env := make([]string, 0, len(names))
	for _, name := range names {
		if value, found := os.LookupEnv(name); found {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// What is kept and shown of a process's output.
const (
	tailBytes = 4096
	tailLines = 5
	lineRunes = 200
)

// tail keeps the end of what is written to it.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// lines returns the last lines, each bounded, on one line and without control characters.
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
	if r := []rune(line); len(r) > lineRunes { // what failed is at its beginning, why at its end, and a path between them
		line = string(r[:lineRunes/2]) + "…" + string(r[len(r)-lineRunes/2:])
	}
	return line
}
