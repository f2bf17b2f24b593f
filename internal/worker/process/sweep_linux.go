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

// Bounds of a sweep. With the pauses of [stubborn], the first bound takes about 20 s.
const (
	sweepSamePasses = 28   // passes in a row that find the same processes, since SIGKILL does not end them
	sweepAllPasses  = 1000 // all passes together; reached if new processes appear all the time
)

// Sweep kills the processes that an earlier worker left on this machine: those with an environment variable TDF_DIR
// whose value begins with prefix. The prefix must be an absolute directory that no other worker uses. Sweep never kills
// this process or its ancestors.
//
// It returns how many processes ended. It logs and skips processes that the kernel keeps in state D, and processes that
// this process may not signal. See docs/operations.md, "Names of workers".
func Sweep(ctx context.Context, prefix string, log *slog.Logger) int {
	if len(prefix) < 2 || prefix[0] != '/' {
		return 0 // the mark would match all programs
	}
	mark := []byte("TDF_DIR=" + prefix)
	s := sweep{
		find:   func(refused map[key]bool) ([]proc, error) { return withMark(mark, refused) },
		kill:   func(pr proc) error { return pr.signal(syscall.SIGKILL) },
		pause:  pauseFor,
		log:    log,
		found:  map[key]bool{},
		denied: map[key]bool{},
	}
	return s.run(ctx)
}

// A sweep is one call of Sweep. A test replaces its functions.
type sweep struct {
	find  func(denied map[key]bool) ([]proc, error) // finds the living processes to end, except the processes in denied
	kill  func(pr proc) error
	pause func(ctx context.Context, d time.Duration)
	log   *slog.Logger

	found, denied map[key]bool // denied: processes that this user may not signal
}

// run kills processes until it finds none, or until it reaches a bound.
func (s *sweep) run(ctx context.Context) (ended int) {
	slow := stubborn{pause: lastPause / 10}
	var left, stuck []proc
	for pass := 0; ctx.Err() == nil; pass++ {
		now, err := s.find(s.denied)
		if err == nil {
			if left = now; len(left) == 0 {
				break
			}
			s.killPass(left)
		}
		slow.saw(left)
		if slow.same == sweepSamePasses || pass == sweepAllPasses {
			s.log.Warn("processes that an earlier worker left behind do not end: continuing without waiting for them",
				"pids", firstPIDs(left), "error", err)
			stuck = left
			break
		}
		if slow.isNews() {
			s.log.Warn("waiting for processes that an earlier worker left behind: they do not end after SIGKILL",
				"pids", firstPIDs(left), "error", err)
		}
		s.pause(ctx, slow.pause)
	}
	for _, pr := range stuck {
		s.denied[pr.key] = true
	}
	return len(s.found) - len(s.denied)
}

func (s *sweep) killPass(left []proc) {
	for _, pr := range left {
		s.found[pr.key] = true
		if err := s.kill(pr); errors.Is(err, fs.ErrPermission) {
			s.denied[pr.key] = true
			s.log.Warn("a process that an earlier worker left behind cannot be ended", "pid", pr.pid, "error", err)
		}
	}
}

// pauseFor waits for d, or until ctx ends.
func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// withMark returns the living processes that have an environment variable beginning with mark. It leaves out this
// process, its ancestors, and the processes in denied.
func withMark(mark []byte, denied map[key]bool) ([]proc, error) {
	all, err := snapshot()
	if err != nil {
		return nil, err
	}
	spared := ancestors(all)
	var marked []proc
	for _, pr := range all {
		if spared[pr.pid] || denied[pr.key] || !pr.alive() || pr.kernel {
			continue
		}
		for _, variable := range environ(pr.pid) {
			if bytes.HasPrefix(variable, mark) {
				marked = append(marked, pr)
				break
			}
		}
	}
	return marked, nil
}

// ancestors returns this process and its ancestors.
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

// longestPause is the longest pause between two passes that kill the same processes.
const longestPause = time.Second

// mostPIDs is the largest number of PIDs in a log line.
const mostPIDs = 20

// A stubborn says how long to pause between two passes that kill processes. While the passes find the same processes,
// the pause doubles. The kernel keeps these processes, for example in state D, and more passes would not end them
// sooner. After a pass that finds a new process, the next pass follows soon, so that processes cannot fork faster than
// they are killed.
type stubborn struct {
	first    time.Duration // the pause after the first pass; 0 before that pass
	pause    time.Duration // the next pause
	same     int           // passes in a row that found no new process
	last     map[key]bool  // the processes that the last pass found
	reported bool          // whether isNews has returned true
}

// saw records which processes a pass has found.
func (s *stubborn) saw(left []proc) {
	if s.first == 0 {
		s.first = s.pause
	}
	now, grown := make(map[key]bool, len(left)), false
	for _, pr := range left {
		now[pr.key] = true
		grown = grown || !s.last[pr.key]
	}
	s.last = now
	if grown {
		s.pause, s.same = s.first, 0
		return
	}
	s.pause, s.same = min(2*s.pause, longestPause), s.same+1
}

// isNews says when to log that processes do not end: it returns true once, after the pause has grown to longestPause.
// By then, the passes have found the same processes for about twice this time.
func (s *stubborn) isNews() bool {
	if s.reported || s.pause < longestPause {
		return false
	}
	s.reported = true
	return true
}

// firstPIDs returns the PIDs of the first mostPIDs processes.
func firstPIDs(all []proc) []int {
	pids := make([]int, 0, min(len(all), mostPIDs))
	for _, pr := range all[:min(len(all), mostPIDs)] {
		pids = append(pids, pr.pid)
	}
	return pids
}
