package run

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A jobLog is a file with a line for each task that has finished, in the format of GNU parallel. A nil jobLog has no
// file.
type jobLog struct {
	file *os.File

	mu        sync.Mutex
	succeeded map[[16]byte]int // how often each command has succeeded before, by its hash
}

const jobLogHead = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

// openJobLog opens the file. If resume is true, it reads which commands have succeeded; otherwise, it empties the file.
func openJobLog(path string, resume bool) (*jobLog, error) {
	if path == "" {
		return nil, nil
	}
	l := &jobLog{succeeded: map[[16]byte]int{}}
	var err error
	l.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, cli.Usagef("--joblog: %v", err)
	}
	regular, err := hold(l.file, resume)
	whole := int64(0)
	switch {
	case err == nil && resume:
		whole, err = l.read()
	case regular && err == nil:
		err = l.file.Truncate(0)
	}
	if err == nil && whole == 0 {
		_, err = l.file.WriteString(jobLogHead)
	}
	if err != nil {
		l.file.Close()
		return nil, fmt.Errorf("--joblog %s: %w", path, err)
	}
	return l, nil
}

// hold locks a regular file until this process ends: another call that writes it would run the same commands again, or
// lose what this call writes. It returns whether the file is regular. With --resume, it must be.
func hold(f *os.File, resume bool) (regular bool, err error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return false, err
	case info.Mode().IsRegular():
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return true, errors.New("another tdf run writes this file; wait for its end, or name another file")
		}
		return true, nil
	case resume:
		return false, errors.New("--resume needs a regular file")
	}
	return false, nil
}

// read reads the commands that have succeeded. If the last line is not whole, because the machine lost its power, read
// removes it. It returns the size of the file.
func (l *jobLog) read() (size int64, err error) {
	lines := bufio.NewReader(l.file)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			if line != "" {
				err = l.file.Truncate(size)
				return size, err
			}
			return size, nil
		}
		if err != nil {
			return size, err
		}
		if size == 0 && !strings.HasPrefix(line, "Seq\t") {
			return size, errors.New("this file is no job log: its first line does not begin with Seq")
		}
		size += int64(len(line))
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 9)
		if len(fields) < 9 {
			continue
		}
		if fields[6] == "0" && fields[7] == "0" {
			l.succeeded[hashOf(fields[8])]++
		}
	}
}

func hashOf(command string) (h [16]byte) {
	sum := sha256.Sum256([]byte(command))
	copy(h[:], sum[:])
	return h
}

// logged returns a command as the log has it: in one line.
func logged(input string) string {
	return strings.NewReplacer("\\", `\\`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(input)
}

// hasSucceeded reports whether a command has succeeded once more often than it was asked for before.
func (l *jobLog) hasSucceeded(input string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h := hashOf(logged(input))
	if l.succeeded[h] == 0 {
		return false
	}
	l.succeeded[h]--
	return true
}

// mark returns the correlation id of the tasks of all calls that write this file. Names of campaigns end with its last
// markInName bytes, unless the user chooses the name.
func (l *jobLog) mark() string {
	info, err := l.file.Stat()
	host, _ := os.Hostname()
	file := fmt.Sprint(host, " ", l.file.Name())
	if err == nil {
		stat, is := info.Sys().(*syscall.Stat_t)
		if is { // containers may share a host name
			file += fmt.Sprint(" ", stat.Ino)
		}
	}
	return fmt.Sprintf("joblog-%x", hashOf(file))
}

const markInName = 8

func (l *jobLog) markOfCampaign() string {
	if l == nil {
		return ""
	}
	mark := l.mark()
	return "-" + mark[len(mark)-markInName:]
}

// add writes the line of a task that has finished.
func (l *jobLog) add(t *manager.Task, of item) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := t.LastRun()
	if r == nil {
		r = &manager.Round{}
	}
	exit, signal := exitOf(t, r)
	_, err := fmt.Fprintf(l.file, "%d\t%s\t%.3f\t%10.3f\t0\t%d\t%d\t%d\t%s\n", of.number, r.Worker,
		float64(r.Started.UnixMicro())/1e6, r.RunTime.Seconds(), r.OutputBytes, exit, signal, logged(of.commandOf(t)))
	if err != nil {
		return fmt.Errorf("--joblog: %w", err)
	}
	return nil
}

// exitOf returns the exit status and the signal of a task. A task that did not succeed has an exit status above 0, even
// if its program has not.
func exitOf(t *manager.Task, r *manager.Round) (exit, signal int) {
	exit, err := strconv.Atoi(r.Exit)
	if err != nil && strings.HasPrefix(r.Exit, "signal: ") {
		return 0, signals()[strings.TrimPrefix(r.Exit, "signal: ")]
	}
	if t.Outcome != "succeeded" && exit == 0 {
		exit = 1
	}
	return exit, 0
}

// The statuses with which shells and timeout say how a command ended that has no exit status.
const (
	ofTimeout = 124
	ofSignal  = 128
)

// statusOf returns the exit status for a task that did not succeed.
func statusOf(t *manager.Task) int {
	r := t.LastRun()
	if t.Outcome == string(task.TimedOut) {
		return ofTimeout
	}
	if r == nil {
		return 1
	}
	exit, signal := exitOf(t, r)
	if signal > 0 {
		return ofSignal + signal
	}
	return max(exit, 1)
}

// commandOf returns the command of a task as people see it.
func (i *item) commandOf(t *manager.Task) string { return cmp.Or(i.shown, t.Input) }

// signals are the numbers of signals by the names that Go has for them.
var signals = sync.OnceValue(func() map[string]int {
	all := map[string]int{}
	for number := 1; number < 65; number++ {
		all[syscall.Signal(number).String()] = number
	}
	return all
})

// close closes the file.
func (l *jobLog) close() {
	if l == nil {
		return
	}
	_ = l.file.Sync()
	_ = l.file.Close()
}
