package admin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
)

// A Pause says that some workers run a program not at all or slowly, because its rounds fail on these workers
// (docs/operations.md, "Programs that a worker pauses").
type Pause struct {
	Program string    `json:"program"`
	Workers int       `json:"workers"`                  // the number of workers that pause the program
	Of      int       `json:"of"`                       // the number of all workers that claim tasks
	Until   time.Time `json:"until,omitzero" as:"unix"` // when the first of these workers tries one round
	Why     string    `json:"why"`                      // the reason that one of the workers reports

	// AfterFailure is 0 if these workers claim no tasks of the program. Otherwise they claim tasks of the program, but
	// a slot pauses for this time after each failed round, so Until is the zero time.
	AfterFailure time.Duration `json:"after_failure,omitempty"`
}

// All reports whether all workers claim no tasks of the program.
func (p *Pause) All() bool { return p.AfterFailure == 0 && p.Workers == p.Of }

// Text describes the pause in one line. The caller passes the present time of Redis's clock.
func (p *Pause) Text(now time.Time) string {
	if p.AfterFailure > 0 {
		return fmt.Sprintf("program %s fails on %d of %d workers, and each of their slots pauses for %v after a "+
			"failed round (sleep_after_failure): %s",
			p.Program, p.Workers, p.Of, p.AfterFailure, p.Why)
	}
	until := "a trial round"
	if p.Until.After(now) {
		until = p.Until.UTC().Format("15:04:05 MST") + ", in " + span(tdf.For(p.Until.Sub(now)))
	}
	return fmt.Sprintf("program %s is paused on %d of %d workers until %s: %s", p.Program, p.Workers, p.Of, until,
		p.Why)
}

// pauses returns the programs that workers pause, and then the programs whose failures make slots pause. They are
// ordered by the number of these workers, the highest first.
func (f *fleet) pauses() []Pause {
	type kind struct {
		program string
		slots   bool
	}
	claiming := 0
	all := map[kind]*Pause{}
	until := map[kind]tdf.Time{}
	for i := range f.workers {
		w := &f.workers[i]
		if !f.claims(w) {
			continue
		}
		claiming++
		for _, one := range w.Pauses {
			if one.Program == "" || one.Slots && one.For == 0 {
				continue // a shortage of the worker, or a remark
			}
			at, k := w.Seen.Add(one.For), kind{one.Program, one.Slots}
			p := all[k]
			if p == nil {
				p = &Pause{Program: one.Program, Why: one.Why}
				all[k], until[k] = p, at
			}
			p.Workers++
			until[k] = min(until[k], at)
			if one.Slots {
				p.AfterFailure = max(p.AfterFailure, one.For.Std())
			}
		}
	}
	pauses := make([]Pause, 0, len(all))
	for k, p := range all {
		p.Of = claiming
		if !k.slots {
			p.Until = until[k].Std()
		}
		pauses = append(pauses, *p)
	}
	slices.SortFunc(pauses, func(a, b Pause) int {
		return cmp.Or(cmp.Compare(min(a.AfterFailure, 1), min(b.AfterFailure, 1)), cmp.Compare(b.Workers, a.Workers),
			cmp.Compare(a.Program, b.Program))
	})
	return pauses
}
