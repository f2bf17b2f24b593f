package worker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
)

// A shortageError says that this worker, and not the task, lacks something that a round needs: descriptors,
// processes, memory or space on the disk. The worker releases the task, and its slot pauses. The release is never
// charged to the task, even if its program may have caused the shortage: another program, or another user of the
// machine, may have caused it as well.
type shortageError struct{ err error }

func (e *shortageError) Error() string { return e.err.Error() }
func (e *shortageError) Unwrap() error { return e.err }

func isShortage(err error) bool { return errors.As(err, new(*shortageError)) }

// lacks lists the errors of the system that mean a shortage, with what helps on the worker %[1]s.
var lacks = []struct {
	err    error
	remedy string
}{
	{syscall.EMFILE, "raise the limit of open files of %[1]s (ulimit -n, LimitNOFILE), or lower its concurrency"},
	{syscall.ENFILE, "raise fs.file-max on the machine of %[1]s, or tdf drain %[1]s"},
	{syscall.EAGAIN, "raise the limit of processes of %[1]s (ulimit -u, TasksMax), or tdf drain %[1]s"},
	{syscall.ENOMEM, "free memory on the machine of %[1]s, or tdf drain %[1]s"},
	{syscall.ENOSPC, freeDisk},
	{syscall.EDQUOT, freeDisk},
}

const freeDisk = "free the disk of %[1]s, or tdf drain %[1]s"

// asShortage returns err as a shortage if the system reported one, unless the round has ended for another reason.
func asShortage(err error) error {
	if errors.Is(err, errTimedOut) || isReleased(err) || isLost(err) || isLater(err) || isShortage(err) {
		return err
	}
	for _, lack := range lacks {
		if errors.Is(err, lack.err) {
			return &shortageError{err}
		}
	}
	return err
}

// Pauses of a slot after rounds that ended because of a shortage.
const (
	firstShortPause   = time.Second
	longestShortPause = 5 * time.Minute
)

// shortages are the shortages of a worker's slots.
type shortages struct {
	worker  string
	changed func() // wakes the loops of heartbeats

	mu    sync.Mutex
	slots map[int]shortage
}

type shortage struct {
	pause time.Duration
	until time.Time
	why   string
}

func newShortages(worker string, changed func()) *shortages {
	return &shortages{worker: worker, changed: changed, slots: map[int]shortage{}}
}

// ended records the end of a round, and returns how long its slot must pause.
func (s *shortages) ended(slot int, cause error, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isShortage(cause) {
		delete(s.slots, slot)
		return 0
	}
	pause := min(max(2*s.slots[slot].pause, firstShortPause), longestShortPause)
	s.slots[slot] = shortage{pause, now.Add(pause), broker.Short(cause.Error()) + "; " + s.remedy(cause)}
	s.changed()
	return pause
}

func (s *shortages) remedy(cause error) string {
	for _, lack := range lacks {
		if errors.Is(cause, lack.err) {
			return fmt.Sprintf(lack.remedy, s.worker)
		}
	}
	return ""
}

// endOnFullDisk ends the worker if the disk was still full after the slot's first pause, and no round runs.
func (s *supervisor) endOnFullDisk(cause error, pause time.Duration) {
	full := errors.Is(cause, syscall.ENOSPC) || errors.Is(cause, syscall.EDQUOT)
	if !s.options.endOnFullDisk || !full || pause <= firstShortPause {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.held {
		if e.slot > 0 { // the others are prefetched tasks
			return
		}
	}
	s.diskFull = fmt.Errorf("no round can run: %w", cause)
	s.endClaims(s.diskFull)
}

// diskFullError returns the error with which endOnFullDisk has ended the worker, or nil.
func (s *supervisor) diskFullError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.diskFull
}

// remark returns a line for people who list the workers, with the latest shortage, or "" if no slot pauses.
func (s *shortages) remark(of int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var latest shortage
	for _, one := range s.slots {
		if one.until.After(latest.until) {
			latest = one
		}
	}
	if len(s.slots) == 0 {
		return ""
	}
	return strings.ReplaceAll(fmt.Sprintf("%d of %d slots pause: %s", len(s.slots), of, latest.why), "\n", " ")
}

// Descriptors that a worker needs, for each slot that runs a program and for the rest.
const (
	filesPerSlot = 16
	otherFiles   = 64
)

// slotsWithin returns how many slots a worker can have with a limit of open files.
func slotsWithin(limit uint64, wanted int) int {
	if limit <= otherFiles+filesPerSlot {
		return 1
	}
	return int(min((limit-otherFiles)/filesPerSlot, uint64(wanted)))
}

// limitSlots lowers the number of slots if its part of the limit of open files allows fewer.
func (w *Worker) limitSlots(limit uint64) {
	wanted := w.slots()
	if n := slotsWithin(limit, wanted); n < wanted {
		w.log.Warn("fewer slots than configured: each needs 16 open files",
			"slots", n, "concurrency", wanted, "open_files_limit", limit)
		w.cfg.Concurrency = n
	}
}

// openFiles returns the limit of open files of this process. Go has raised it as far as possible.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 20
	}
	return limit.Cur
}
