package process

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func maxRSS(ru *syscall.Rusage) int64 { return ru.Maxrss * 1024 }

// settle notes what the cgroup knows better than the processes that were waited for.
func (p *Process) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended.OutOfMemory = p.outOfMemory()
	if p.group == nil {
		return
	}
	if n, ok := p.group.number("cpu.stat", "usage_usec"); ok {
		p.ended.CPU = time.Duration(n) * time.Microsecond
	}
	if n, ok := p.group.number("memory.peak", ""); ok {
		p.ended.MaxRSS = n
	}
}

// outOfMemory says in words why memory ran out; "" if it is not known to have.
func (p *Process) outOfMemory() string {
	if p.group != nil {
		if n, ok := p.group.number("memory.events", "oom_kill"); ok {
			return oomInGroup(n, p.host.cfg.Limits.Memory)
		}
	}
	if p.status.Signal() != syscall.SIGKILL || !p.status.Signaled() || p.killed.Load() || oomKills() <= p.oomBefore {
		return ""
	}
	return "the machine ran out of memory, and the kernel probably ended the program for that"
}

func oomInGroup(kills, limit int64) string {
	switch {
	case kills == 0:
		return ""
	case limit > 0:
		return fmt.Sprintf("its processes together used more memory than %d bytes (memory), and the kernel ended it for that", limit)
	}
	return "memory ran out on this machine or for its workers, and the kernel ended processes of the program for that"
}

// oomKills counts the processes that the kernel ended on this machine because memory ran out; 0 where
// it does not say.
func oomKills() int64 {
	f, err := os.Open("/proc/vmstat")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
