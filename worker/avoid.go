package worker

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/redisstate"
)

// avoidance keeps a host that cannot run a program from burning the queue: after failures in a
// row the worker leaves the program alone for a while, and then tries one round of it
// (docs/operations.md, "Programs that a worker leaves alone").
type avoidance struct {
	*sync.Mutex
	most     int // failures in a row; 0: whatever
	log      *slog.Logger
	clock    func() time.Time
	programs map[string]*reputation
}

// A reputation is what a worker knows of a program that went wrong.
type reputation struct {
	failures int           // in a row
	unfits   int           // in a row: rounds that could not start here
	why      string        // the last of them
	until    time.Time     // left alone
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
	return avoidance{Mutex: &sync.Mutex{}, most: most, log: log, clock: time.Now, programs: map[string]*reputation{}}
}

// shunned says whether the program is left alone but for probes.
func (a *avoidance) shunned(r *reputation) bool {
	return r.unfits > 0 || a.most > 0 && r.failures >= a.most
}

// now returns the programs to leave alone now, and whether there are others of which one round
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

// claimed: if the program was left alone, this is the round that is tried.
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
		a.log.Info("a program that was left alone runs again", "program", program)
	}
	delete(a.programs, program)
}

// failed: a round of the program ran, and failed.
func (a *avoidance) failed(program, why string) {
	a.Lock()
	defer a.Unlock()
	r := a.of(program)
	why = short(why)
	r.failures, r.unfits, r.probing, r.why = r.failures+1, 0, false, why
	if a.most > 0 && r.failures >= a.most {
		a.leaveAlone(program, r, probePause, fmt.Sprintf("%d rounds of it failed in a row; the last: %s", r.failures, why))
	}
}

// unfit: a round of the program could not even start on this host.
func (a *avoidance) unfit(program, why string) {
	a.Lock()
	defer a.Unlock()
	r := a.of(program)
	why = short(why)
	pause := min(firstUnfitPause<<min(r.unfits, 10), probePause)
	r.unfits, r.probing, r.why = r.unfits+1, false, why
	a.leaveAlone(program, r, pause, "it cannot be run here: "+why)
}

func (a *avoidance) leaveAlone(program string, r *reputation, pause time.Duration, why string) {
	r.until = a.clock().Add(pause)
	if pause != r.pause {
		a.log.Warn("the worker leaves a program alone for a while", "program", program, "for", pause, "why", why)
	}
	r.pause = pause
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

// String tells which programs are left alone, and why.
func (a *avoidance) String() string {
	a.Lock()
	defer a.Unlock()
	var all []string
	for name, r := range a.programs {
		if a.shunned(r) {
			all = append(all, name+": "+r.why)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
