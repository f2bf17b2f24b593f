package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// identity identifies this process among all processes of all machines: by the boot of the machine, the PID namespace,
// the PID, and the time when the process began. It is "" if one of these values is unknown.
var identity = sync.OnceValue(func() string { return identityOf(os.Getpid()) })

func identityOf(pid int) string {
	machine, err1 := os.ReadFile("/proc/sys/kernel/random/boot_id")
	numbers, err2 := os.Readlink("/proc/self/ns/pid")
	start, err3 := startTime(pid)
	if err1 != nil || err2 != nil || err3 != nil {
		return ""
	}
	return fmt.Sprintf("%s %s %d %s", bytes.TrimSpace(machine), numbers, pid, start)
}

// isGone reports whether the process with that identity ran on this machine and has certainly ended.
func isGone(process string) bool {
	var machine, numbers, start string
	var pid int
	if _, err := fmt.Sscan(process, &machine, &numbers, &pid, &start); err != nil {
		return false
	}
	self := strings.Fields(identity())
	if len(self) != 4 || self[0] != machine || self[1] != numbers {
		return false
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	at, err := startTime(pid)
	return errors.Is(err, errEnded) || err == nil && at != start
}

// errEnded says that a process is a zombie: it has ended, but its parent has not waited for it yet.
var errEnded = errors.New("the process has ended")

// startTime returns when the process began, in ticks since boot: the 22nd field of /proc/PID/stat.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// skip the process's name, which may contain blanks and parentheses
	words := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	switch {
	case len(words) < 20:
		return "", fmt.Errorf("the status of process %d: %q", pid, stat)
	case words[0][0] == 'Z':
		return "", errEnded
	}
	return string(words[19]), nil
}
