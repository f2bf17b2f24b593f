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
	"github.com/tdf-framework/tdf/redisstate"
)

// avoidance is the circuit breakers of a worker, one for each program. They keep a host that cannot run a program from
// burning the queue: the worker pauses the program for a while, and then tries one round of it (docs/operations.md,
// "Programs that a worker pauses"). Failures in a row alone prove nothing, since a sweep may have whole regions that fail:
// the program has to succeed elsewhere meanwhile.
type avoidance struct {
	*sync.Mutex
	most     int // failures in a row; 0: whatever
	log      *slog.Logger
	clock    func() time.Time
	programs map[string]*reputation
	wells    map[string]bool // programs that succeeded here and of which the other workers do not know yet
	news     signal          // of wells
}

// A reputation is what a worker knows of a program that went wrong.
type reputation struct {
	failures int           // in a row
	open     bool          // paused because of them
	asked    time.Time     // when it was last asked whether the program succeeds elsewhere
	unfits   int           // in a row: rounds that could not start here
	last     string        // what the last of them said
	why      string        // it is paused
	until    time.Time     // paused
	probing  bool          // one round of it runs, to see
	pause    time.Duration // the last one
}

const (
	probePause      = time.Minute
	firstUnfitPause = time.Second
	maxReputations  = redisstate.MaxAvoided
	maxWhy          = 500 // bytes
)

func newAvoidance(most int, log *slog.Logger) avoidance {
	return avoidance{Mutex: &sync.Mutex{}, most: most, log: log, clock: time.Now, programs: map[string]*reputation{}, wells: map[string]bool{}, news: make(signal, 1)}
}

// shunned says whether the program is paused, but for probes.
func (a *avoidance) shunned(r *reputation) bool { return r.unfits > 0 || r.open }

// now returns the programs to pass over now, and whether there are others of which one round
// is to be tried.
func (a *avoidance) now() (avoid []string, probing bool) {
	a.Lock()
	defer a.Unlock()
	at := a.clock()
	for name, r := range a.programs {
		switch {
		case !a.shunned(r):
		case r.probing || at.Before(r.until):
			avoid = append(avoid, name)
		default:
			probing = true
		}
	}
	slices.Sort(avoid)
	return avoid, probing
}

// next returns how long it is until a program is to be tried again, at most the given time.
func (a *avoidance) next(most time.Duration) time.Duration {
	a.Lock()
	defer a.Unlock()
	for _, r := range a.programs {
		if left := r.until.Sub(a.clock()); a.shunned(r) && !r.probing && left > 0 {
			most = min(most, left)
		}
	}
	return most
}

// notThere: of the programs of which a round was to be tried, none was to be had. They are looked
// for again after another pause.
func (a *avoidance) notThere() {
	a.Lock()
	defer a.Unlock()
	at := a.clock()
	for _, r := range a.programs {
		if a.shunned(r) && !r.probing && !at.Before(r.until) {
			r.until = at.Add(r.pause)
		}
	}
}

// claimed: if the program was paused, this is the round that is tried.
func (a *avoidance) claimed(program string) {
	a.Lock()
	defer a.Unlock()
	if r := a.programs[program]; r != nil && a.shunned(r) {
		r.probing = true
	}
}

// over: a round of the program has ended, whatever that says about the program here.
func (a *avoidance) over(program string) {
	a.Lock()
	defer a.Unlock()
	if r := a.programs[program]; r != nil {
		r.probing = false
	}
}

func (a *avoidance) succeeded(program string) {
	a.Lock()
	defer a.Unlock()
	if r := a.programs[program]; r != nil && a.shunned(r) {
		a.log.Info("a program that was paused runs again", "program", program)
	}
	delete(a.programs, program)
	if len(a.wells) < maxReputations {
		a.wells[program] = true
		a.news.give()
	}
}

// failed: a round of the program ran, and failed. True: it has done so often enough to ask whether it succeeds elsewhere,
// which the answer is for.
func (a *avoidance) failed(program, why string) (ask bool) {
	a.Lock()
	defer a.Unlock()
	r := a.failure(program, why)
	r.unfits = 0
	if a.most == 0 || r.failures < a.most || a.clock().Sub(r.asked) < probePause {
		return false
	}
	r.asked = a.clock()
	return true
}

// answer opens or closes the circuit breaker of a program that fails in a row.
func (a *avoidance) answer(program string, succeedsElsewhere bool) {
	a.Lock()
	defer a.Unlock()
	r := a.programs[program]
	if r == nil {
		return // it has succeeded here meanwhile
	}
	if r.open = succeedsElsewhere; r.open {
		a.pause(program, r, probePause, fmt.Sprintf("%d rounds of it failed in a row, and another worker succeeds with it; the last: %s", r.failures, r.last))
	}
}

// unstarted: a round of the program could not be started, here or anywhere.
func (a *avoidance) unstarted(program, why string) {
	a.Lock()
	defer a.Unlock()
	if r := a.failure(program, why); a.most > 0 && r.failures >= a.most {
		r.open = true
		a.pause(program, r, probePause, fmt.Sprintf("%d rounds of it failed in a row; the last could not be started: %s", r.failures, r.last))
	}
}

func (a *avoidance) failure(program, why string) *reputation {
	r := a.of(program)
	r.failures, r.probing, r.last = r.failures+1, false, short(why)
	return r
}

// unfit: a round of the program could not even start on this host.
func (a *avoidance) unfit(program, why string) {
	a.Lock()
	defer a.Unlock()
	r := a.of(program)
	length := min(firstUnfitPause<<min(r.unfits, 10), probePause)
	r.unfits, r.probing = r.unfits+1, false
	a.pause(program, r, length, "it cannot be run here: "+short(why))
}

func (a *avoidance) pause(program string, r *reputation, length time.Duration, why string) {
	r.until, r.why = a.clock().Add(length), why
	if length != r.pause {
		a.log.Warn("the worker pauses a program", "program", program, "for", length, "why", why)
	}
	r.pause = length
}

func (a *avoidance) of(program string) *reputation {
	r := a.programs[program]
	if r == nil {
		if len(a.programs) >= maxReputations {
			a.forgetOldest()
		}
		r = &reputation{}
		a.programs[program] = r
	}
	return r
}

func (a *avoidance) forgetOldest() {
	oldest := ""
	for name, r := range a.programs {
		if oldest == "" || r.until.Before(a.programs[oldest].until) {
			oldest = name
		}
	}
	delete(a.programs, oldest)
}

// short bounds a reason, which may have come from a program.
func short(why string) string {
	why = strings.Join(strings.Fields(strings.ToValidUTF8(why, "\uFFFD")), " ")
	if len(why) > maxWhy {
		why = strings.ToValidUTF8(why[:maxWhy], "") + "…"
	}
	return why
}

// pauses tells which programs are paused, those first that are tried again first.
func (a *avoidance) pauses() []redisstate.Pause {
	a.Lock()
	defer a.Unlock()
	var all []redisstate.Pause
	for name, r := range a.programs {
		if a.shunned(r) {
			all = append(all, redisstate.Pause{Program: name, For: tdf.For(max(0, r.until.Sub(a.clock()))), Why: r.why})
		}
	}
	slices.SortFunc(all, func(x, y redisstate.Pause) int {
		return cmp.Or(cmp.Compare(x.For, y.For), cmp.Compare(x.Program, y.Program))
	})
	return all
}
