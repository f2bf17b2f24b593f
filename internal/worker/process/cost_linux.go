package process

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func maxRSS(ru *syscall.Rusage) int64 { return ru.Maxrss * 1024 }

// peakMargin returns the margin by which a program's peak must exceed the peak of this process. A smaller peak does not
// count as the program's own. The kernel counts memory for each CPU, so its numbers are exact only to some hundred KiB.
func peakMargin(own int64) int64 { return 1<<20 + own/8 }

// ownPeak returns the peak memory of this process, in bytes. Linux also counts this peak for each process that this
// process starts, because execve keeps the peak of the old process image. For the same reason, the answer of getrusage
// counts the program that started this process. If the peak is unknown, ownPeak returns the largest int64.
func ownPeak() int64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "\nVmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return kib * 1024
}

// settle completes the measurements. If there is a cgroup, its numbers replace the sums over reaped processes, because
// the cgroup's numbers are more exact. The peak is left out if it may be the peak of this process.
func (p *Process) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended.OutOfMemory = p.outOfMemory()
	if p.ended.MaxRSS-peakMargin(p.inherited) <= p.inherited {
		p.ended.MaxRSS = 0
	}
	if p.group == nil {
		return
	}
	if n, ok := p.group.value("cpu.stat", "usage_usec"); ok {
		p.ended.CPU = time.Duration(n-p.group.before) * time.Microsecond
		p.group.after = n
	}
	if n, ok := p.group.value("memory.peak", ""); ok {
		p.ended.MaxRSS = n
	}
}

// outOfMemory returns a sentence about a lack of memory, or "" if no lack is known.
func (p *Process) outOfMemory() string {
	if p.group == nil {
		return ""
	}
	n, _ := p.group.value("memory.events", "oom_kill")
	return oomInGroup(n, p.host.cfg.Memory)
}

func oomInGroup(kills, limit int64) string {
	switch {
	case kills == 0:
		return ""
	case limit > 0:
		return fmt.Sprintf("all of its processes together used more than %d bytes of memory (memory), so the kernel "+
			"killed it", limit)
	}
	return "this machine, or all of its workers, ran out of memory, so the kernel killed processes of the program"
}
