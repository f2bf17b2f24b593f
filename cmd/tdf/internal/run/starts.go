package run

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// startPause is the time between two looks at this machine, if a command may not start yet.
const startPause = 50 * time.Millisecond

// gated reports whether a task is opened only when its command may start at once: the starts depend on the time, on
// this machine, or on the results of earlier commands.
func (r *run) gated() bool {
	return !r.elsewhere() && (r.pause > 0 || r.load.given || r.memfree > 0 || r.halt.why != "")
}

// mayStart reports whether another command may start. The caller then opens its task.
func (c *campaign) mayStart(ctx context.Context) (bool, error) {
	if c.pause > 0 && time.Since(c.lastStart) < c.pause {
		return false, nil
	}
	free, err := c.hasFreeSlot(ctx)
	if err != nil || !free {
		return false, err
	}
	if c.load.given {
		n, err := runningProcesses("/proc/loadavg")
		if err != nil || n >= c.load.n {
			return false, err
		}
	}
	if c.memfree > 0 {
		n, err := freeMemory("/proc/meminfo")
		if err != nil || n < int64(c.memfree) {
			return false, err
		}
	}
	c.lastStart = time.Now()
	return true, nil
}

// hasFreeSlot reports whether fewer commands run, or are about to, than the call has slots, and --halt ends nothing. A
// result that waits for earlier ones, because of --keep-order, needs no slot.
func (c *campaign) hasFreeSlot(ctx context.Context) (bool, error) {
	p, err := c.unhandled(ctx)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.unfinished < c.here.slots && !c.isHalt(p.failed, p.succeeded), nil
}

// An unhandled is what Redis says of the pending tasks.
type unhandled struct {
	unfinished        int
	ended             []int64 // ascending; without those that were cancelled
	failed, succeeded int64   // of ended
}

func (c *campaign) unhandled(ctx context.Context) (u unhandled, err error) {
	ids := c.pending()
	if len(ids) == 0 { // the query would select all tasks
		return u, nil
	}
	for t, err := range c.m.List(ctx, manager.Query{IDs: ids}) {
		switch {
		case err != nil:
			return u, err
		case t.Group != c.base.Group || t.Outcome == task.Cancelled:
			continue
		case !t.State.Finished():
			u.unfinished++
			continue
		case t.Outcome == string(task.Succeeded):
			u.succeeded++
		default:
			u.failed++
		}
		u.ended = append(u.ended, t.ID)
	}
	return u, nil
}

// runningProcesses returns how many processes run or wait for a processor, without this one.
func runningProcesses(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("--load: %w", err)
	}
	fields := strings.Fields(string(text)) // 0.20 0.18 0.12 1/80 11206
	if len(fields) == 5 {
		running, _, _ := strings.Cut(fields[3], "/")
		n, err := strconv.Atoi(running)
		if err == nil {
			return max(0, n-1), nil
		}
	}
	return 0, fmt.Errorf("--load: %s has an unknown format", path)
}

// freeMemory returns how many bytes of memory processes can get.
func freeMemory(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("--memfree: %w", err)
	}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == "MemAvailable:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err == nil {
				return n << 10, nil
			}
		}
	}
	return 0, fmt.Errorf("--memfree: %s does not say how much memory is available", path)
}
