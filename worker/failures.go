package worker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// failures counts the failed rounds in a row of each program, because the slot of a failed round pauses. The worker
// reports programs whose failures slow it (docs/operations.md, "Programs that fail").
type failures struct {
	*sync.Mutex
	slotPause time.Duration // how long a slot pauses after a failed round
	clock     func() time.Time
	programs  map[string]*failingProgram
	changed   signal // wakes the loop of heartbeats when slots begin to pause because of failures
	unstarted string // the last program that could not be started, until it succeeds or fails in another way
	since     time.Time
}

// A failingProgram is one whose last rounds have failed.
type failingProgram struct {
	rounds int       // failed rounds in a row
	last   time.Time // when the last round failed
	why    string
}

const (
	mostFailing  = 1000        // programs
	slowsFor     = time.Minute // after the last failure
	slowedAfter  = 5           // failed rounds in a row after which the worker reports the pauses of its slots
	noVersionLen = len("-12345678")
)

func newFailures(slotPause time.Duration) failures {
	return failures{
		Mutex: &sync.Mutex{}, slotPause: slotPause, clock: time.Now, programs: map[string]*failingProgram{},
		changed: make(signal, 1),
	}
}

// slows reports whether rounds of the program keep failing, so that the slots of the worker pause again and again.
func (f *failures) slows(p *failingProgram) bool {
	return f.slotPause > 0 && p.rounds >= slowedAfter && f.clock().Sub(p.last) <= max(f.slotPause, slowsFor)
}

// started forgets that the program could not be started. The caller has the lock.
func (f *failures) started(program string) {
	if f.unstarted == program {
		f.unstarted = ""
	}
}

// couldNotStart records that a round could not be started. The next ones may not start either.
func (f *failures) couldNotStart(program, why string) {
	f.failed(program, why)
	f.Lock()
	defer f.Unlock()
	f.unstarted, f.since = program, f.clock()
}

// mayNotStart reports whether a round could not be started lately, so that the worker keeps no tasks in stock.
func (f *failures) mayNotStart() bool {
	f.Lock()
	defer f.Unlock()
	return f.unstarted != "" && f.clock().Sub(f.since) < slowsFor
}

// succeeded records that a round of the program succeeded. If it is a corrected program, the worker no longer reports
// the failures of the earlier one, unless it fails again.
func (f *failures) succeeded(program string) {
	f.Lock()
	defer f.Unlock()
	before := f.reported()
	f.started(program)
	delete(f.programs, program)
	for name, p := range f.programs {
		if unversioned(name) == unversioned(program) {
			p.last = time.Time{}
		}
	}
	if f.reported() < before {
		f.changed.give()
	}
}

// reported returns how many programs the worker reports.
func (f *failures) reported() (n int) {
	for _, p := range f.programs {
		if f.slows(p) {
			n++
		}
	}
	return n
}

// unversioned returns the name of a program without the hash that tdf adds to the name of its directory.
func unversioned(program string) string {
	i := len(program) - noVersionLen
	if i <= 0 || program[i] != '-' || strings.Trim(program[i+1:], "0123456789abcdef") != "" {
		return program
	}
	return program[:i]
}

// failed records that a round of the program failed.
func (f *failures) failed(program, why string) {
	f.Lock()
	defer f.Unlock()
	f.started(program)
	before, p := f.reported(), f.of(program)
	p.rounds, p.last, p.why = p.rounds+1, f.clock(), broker.Short(why)
	if f.reported() > before {
		f.changed.give()
	}
}

func (f *failures) of(program string) *failingProgram {
	p := f.programs[program]
	if p != nil {
		return p
	}
	if len(f.programs) >= mostFailing {
		oldest := ""
		for name, p := range f.programs {
			if oldest == "" || p.last.Before(f.programs[oldest].last) {
				oldest = name
			}
		}
		delete(f.programs, oldest)
	}
	p = &failingProgram{}
	f.programs[program] = p
	return p
}

// pauses returns the programs whose failures make slots pause, ordered by name.
func (f *failures) pauses() (all []presence.Pause) {
	f.Lock()
	defer f.Unlock()
	for name, p := range f.programs {
		if f.slows(p) {
			why := fmt.Sprintf("%d rounds failed in a row; the last failure: %s", p.rounds, p.why)
			all = append(all, presence.Pause{Program: name, For: task.For(f.slotPause), Why: why})
		}
	}
	slices.SortFunc(all, func(x, y presence.Pause) int { return cmp.Compare(x.Program, y.Program) })
	return all
}
