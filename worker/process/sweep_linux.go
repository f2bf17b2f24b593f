package process

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// Sweep kills every process of this machine whose environment has TDF_DIR with a value that begins
// with prefix, until there is none: what programs left behind whose worker is no more. It never kills
// this process or those that started it. It returns how many there were. prefix is an absolute
// directory; a worker's programs have theirs below it, and those of no one else.
func Sweep(ctx context.Context, prefix string, log *slog.Logger) int {
	if len(prefix) < 2 || prefix[0] != '/' {
		return 0 // everybody's
	}
	found, refused := map[key]bool{}, map[key]bool{}
	for ctx.Err() == nil {
		marked := withMark([]byte("TDF_DIR="+prefix), refused)
		if len(marked) == 0 {
			break
		}
		for _, pr := range marked {
			found[pr.key] = true
			err := pr.signal(syscall.SIGKILL)
			if errors.Is(err, fs.ErrPermission) {
				refused[pr.key] = true
				log.Warn("a process that an earlier run left behind cannot be ended", "pid", pr.pid, "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lastPause / 10):
		}
	}
	return len(found) - len(refused)
}

// withMark finds the living processes whose environment has such a variable.
func withMark(mark []byte, but map[key]bool) []proc {
	all := mustSnapshot()
	spared := ancestors(all)
	var marked []proc
	for _, pr := range all {
		if spared[pr.pid] || but[pr.key] || !pr.alive() || pr.kernel {
			continue
		}
		for _, variable := range environ(pr.pid) {
			if bytes.HasPrefix(variable, mark) {
				marked = append(marked, pr)
				break
			}
		}
	}
	return marked
}

// ancestors returns this process and those that it comes from.
func ancestors(all []proc) map[int]bool {
	parent := map[int]int{}
	for _, pr := range all {
		parent[pr.pid] = pr.ppid
	}
	spared := map[int]bool{}
	for pid := os.Getpid(); pid != 0 && !spared[pid]; pid = parent[pid] {
		spared[pid] = true
	}
	return spared
}
