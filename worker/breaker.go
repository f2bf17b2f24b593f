package worker

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// breakers are the circuit breakers of a worker, one for each program. Without them, a host that cannot run a program
// would claim and fail all of the program's tasks, one after another. While a breaker is open, the worker avoids the
// program. Then the breaker becomes half-open: the worker tries one round (docs/operations.md, "Programs that a worker
// pauses").
//
// If rounds run and fail, the tasks may be the cause: a whole region of a sweep may fail. So such rounds open no
// breaker.
type breakers struct {
	*sync.Mutex
	maxFailures int           // rounds in a row that could not start after which a breaker opens; 0 means no limit
	slotPause   time.Duration // how long a slot pauses after a failed round
	log         *slog.Logger
	clock       func() time.Time
	programs    map[string]*breaker
	changed     signal // wakes the loop of heartbeats when slots begin to pause because of failures
}

// A breaker is the circuit breaker of one program.
type breaker struct {
	failures   int           // failed rounds in a row
	failed     time.Time     // when the last round failed or could not start
	starts     int           // rounds in a row that could not start
	tooMany    bool          // the breaker is open because of these
	unfits     int           // rounds in a row that this host could not start; if above 0, the breaker is open
	lastReason string        // why the last round failed
	reason     string        // why the breaker is open
	until      time.Time     // when the breaker becomes half-open
	probing    bool          // the breaker is half-open, and a round tries the program
	pause      time.Duration // how long the breaker was open the last time
}

const (
	probePause      = time.Minute
	firstUnfitPause = time.Second
	maxBreakers     = redisstate.MaxAvoided
	forgetPause     = 10 * time.Minute // after this time without a failed round, a breaker without tasks is forgotten
	slowedAfter     = 5                // failed rounds in a row after which the worker reports the pauses of its slots
)

func newBreakers(maxFailures int, slotPause time.Duration, log *slog.Logger) breakers {
	return breakers{
		Mutex: &sync.Mutex{}, maxFailures: maxFailures, slotPause: slotPause, log: log, clock: time.Now,
		programs: map[string]*breaker{}, changed: make(signal, 1),
	}
}

// isOpen reports whether the breaker is open or half-open.
func (b *breaker) isOpen() bool { return b.unfits > 0 || b.tooMany }

// slows reports whether rounds of the program keep failing, so that the slots of the worker pause again and again.
func (bs *breakers) slows(b *breaker) bool {
	return bs.slotPause > 0 && b.failures >= slowedAfter && !b.isOpen() && bs.clock().Sub(b.failed) <= max(bs.slotPause,
		probePause)
}

// avoided returns the programs that a claim must avoid now, sorted by name. probing reports whether another breaker is
// half-open. If so, the worker must try one round of that breaker's program.
func (bs *breakers) avoided() (programs []string, probing bool) {
	bs.Lock()
	defer bs.Unlock()
	at := bs.clock()
	for name, b := range bs.programs {
		switch {
		case !b.isOpen():
		case b.probing || at.Before(b.until):
			programs = append(programs, name)
		default:
			probing = true
		}
	}
	slices.Sort(programs)
	return programs, probing
}

// nextProbe returns how long it takes until the next breaker becomes half-open. The result is at most longest.
func (bs *breakers) nextProbe(longest time.Duration) time.Duration {
	bs.Lock()
	defer bs.Unlock()
	for _, b := range bs.programs {
		if left := b.until.Sub(bs.clock()); b.isOpen() && !b.probing && left > 0 {
			longest = min(longest, left)
		}
	}
	return longest
}

// nothingToProbe records that a claim found no task of the programs whose breakers are half-open. It opens these
// breakers again, or forgets them after a long time: a corrected program may have replaced theirs.
func (bs *breakers) nothingToProbe() {
	bs.Lock()
	defer bs.Unlock()
	at := bs.clock()
	for name, b := range bs.programs {
		switch {
		case !b.isOpen() || b.probing || at.Before(b.until):
		case at.Sub(b.failed) >= forgetPause:
			delete(bs.programs, name)
		default:
			b.until = at.Add(b.pause)
		}
	}
}

// claimed records that the worker has claimed a task of the program. If the program's breaker is half-open, the round
// of this task tries the program.
func (bs *breakers) claimed(program string) {
	bs.Lock()
	defer bs.Unlock()
	if b := bs.programs[program]; b != nil && b.isOpen() {
		b.probing = true
	}
}

// roundEnded records that a round of the program has ended, whatever its outcome.
func (bs *breakers) roundEnded(program string) {
	bs.Lock()
	defer bs.Unlock()
	if b := bs.programs[program]; b != nil {
		b.probing = false
	}
}

// succeeded records that a round of the program succeeded, and closes the program's breaker. If it is a corrected
// program, the worker no longer reports the failures of the earlier one, unless it fails again.
func (bs *breakers) succeeded(program string) {
	bs.Lock()
	defer bs.Unlock()
	if b := bs.programs[program]; b != nil && b.isOpen() {
		bs.log.Info("the worker runs a paused program again", "program", program)
	}
	before := bs.reported()
	delete(bs.programs, program)
	for name, b := range bs.programs {
		if unversioned(name) == unversioned(program) {
			b.failed = time.Time{}
		}
	}
	if bs.reported() < before {
		bs.changed.give()
	}
}

// reported returns how many breakers the worker reports.
func (bs *breakers) reported() (n int) {
	for _, b := range bs.programs {
		if b.isOpen() || bs.slows(b) {
			n++
		}
	}
	return n
}

// unversioned returns the name of a program without the hash that tdf adds to the name of its directory.
func unversioned(program string) string {
	i := len(program) - len("-12345678")
	if i <= 0 || program[i] != '-' || strings.Trim(program[i+1:], "0123456789abcdef") != "" {
		return program
	}
	return program[:i]
}

// failed records that a round of the program ran and failed.
func (bs *breakers) failed(program, reason string) {
	bs.Lock()
	defer bs.Unlock()
	b := bs.countFailure(program, reason)
	b.unfits, b.starts, b.tooMany = 0, 0, false
}

// couldNotStart records that a round of the program could not be started, for a reason that holds on every host.
func (bs *breakers) couldNotStart(program, reason string) {
	bs.Lock()
	defer bs.Unlock()
	b := bs.countFailure(program, reason)
	b.starts++
	if b.tooMany = bs.maxFailures > 0 && b.starts >= bs.maxFailures; b.tooMany {
		bs.open(program, b, probePause, fmt.Sprintf("%d rounds in a row could not be started, the last one: %s", b.starts,
			b.lastReason))
	}
}

func (bs *breakers) countFailure(program, reason string) *breaker {
	b := bs.of(program)
	b.failures, b.failed, b.probing, b.lastReason = b.failures+1, bs.clock(), false, broker.Short(reason)
	if b.failures == slowedAfter {
		bs.changed.give()
	}
	return b
}

// unfit records that this host could not start a round of the program, and opens the program's breaker.
func (bs *breakers) unfit(program, reason string) {
	bs.Lock()
	defer bs.Unlock()
	b := bs.of(program)
	length := min(firstUnfitPause<<min(b.unfits, 10), probePause)
	b.unfits, b.failed, b.probing = b.unfits+1, bs.clock(), false
	bs.open(program, b, length, "this host cannot run the program: "+broker.Short(reason))
}

func (bs *breakers) open(program string, b *breaker, length time.Duration, reason string) {
	b.until, b.reason = bs.clock().Add(length), reason
	if length != b.pause {
		bs.log.Warn("the worker pauses a program", "program", program, "for", length, "reason", reason)
	}
	b.pause = length
}

func (bs *breakers) of(program string) *breaker {
	b := bs.programs[program]
	if b == nil {
		if len(bs.programs) >= maxBreakers {
			bs.removeOldest()
		}
		b = &breaker{}
		bs.programs[program] = b
	}
	return b
}

func (bs *breakers) removeOldest() {
	oldest := ""
	for name, b := range bs.programs {
		if oldest == "" || b.until.Before(bs.programs[oldest].until) {
			oldest = name
		}
	}
	delete(bs.programs, oldest)
}

// pauses returns the paused programs, and then the programs whose failures make slots pause. The program that the
// worker tries next comes first.
func (bs *breakers) pauses() []presence.Pause {
	bs.Lock()
	defer bs.Unlock()
	var all []presence.Pause
	for name, b := range bs.programs {
		if b.isOpen() {
			all = append(all, presence.Pause{
				Program: name, For: tdf.For(max(0, b.until.Sub(bs.clock()))),
				Why: b.reason,
			})
		} else if bs.slows(b) {
			why := fmt.Sprintf("%d rounds failed in a row; the last failure: %s", b.failures, b.lastReason)
			all = append(all, presence.Pause{Program: name, For: tdf.For(bs.slotPause), Why: why, Slots: true})
		}
	}
	slices.SortFunc(all, func(x, y presence.Pause) int {
		if x.Slots != y.Slots {
			return map[bool]int{false: -1, true: 1}[x.Slots]
		}
		return cmp.Or(cmp.Compare(x.For, y.For), cmp.Compare(x.Program, y.Program))
	})
	return all
}
