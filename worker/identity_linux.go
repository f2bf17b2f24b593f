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

// identity names this process among all that ever were: by the run of the machine's kernel, the
// namespace in which its number counts, the number, and when it began. "" where that cannot be told.
var identity = sync.OnceValue(func() string { return identityOf(os.Getpid()) })

func identityOf(pid int) string {
	machine, err1 := os.ReadFile("/proc/sys/kernel/random/boot_id")
	numbers, err2 := os.Readlink("/proc/self/ns/pid")
	began, err3 := startTime(pid)
	if err1 != nil || err2 != nil || err3 != nil {
		return ""
	}
	return fmt.Sprintf("%s %s %d %s", bytes.TrimSpace(machine), numbers, pid, began)
}

// isGone says whether the process of that identity was one of this machine, and is no more. What
// cannot be known is not gone.
func isGone(process string) bool {
	var machine, numbers, began string
	var pid int
	if _, err := fmt.Sscan(process, &machine, &numbers, &pid, &began); err != nil {
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
	return errors.Is(err, errEnded) || err == nil && at != began
}

// errEnded: a zombie, whose parent has not yet looked.
var errEnded = errors.New("the process has ended")

// startTime is the 22nd word of the process's status, in ticks since the kernel began.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	words := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before it may hold anything
	switch {
	case len(words) < 20:
		return "", fmt.Errorf("the status of process %d: %q", pid, stat)
	case words[0][0] == 'Z':
		return "", errEnded
	}
	return string(words[19]), nil
}
