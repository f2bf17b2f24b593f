package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Pause says that no worker runs a program, because workers cannot start it (docs/lifecycle.md, "Held programs"), or
// that workers run it slowly, because its rounds fail (docs/operations.md, "Programs that fail").
type Pause struct {
	Program string `json:"program"`
	Workers int    `json:"workers"` // the number of workers on which the program fails, or all workers
	Of      int    `json:"of"`      // the number of all workers that claim tasks
	// Until is when a task tries a held program.
	Until time.Time `json:"until,omitzero" as:"unix"`
	Why   string    `json:"why"` // the last error that is known; for a held program also which workers had it

	// AfterFailure is 0 if the program is held. Otherwise workers claim tasks of the program, but a slot pauses for this
	// time after each failed round, so Until is the zero time.
	AfterFailure time.Duration `json:"after_failure,omitempty"`

	Source string `json:"-"` // names a held program; see [task.Properties.SourceName]
}

// All reports whether no worker claims tasks of the program.
func (p *Pause) All() bool { return p.AfterFailure == 0 }

// Text describes the pause in one line. The caller passes the present time of Redis's clock.
func (p *Pause) Text(now time.Time) string {
	if p.AfterFailure > 0 {
		return fmt.Sprintf("program %s fails on %d of %d workers, and each of their slots pauses for %v after a "+
			"failed round (sleep_after_failure): %s",
			p.Program, p.Workers, p.Of, p.AfterFailure, p.Why)
	}
	next := "a task tries it now"
	if p.Until.After(now) {
		next = "a task tries it at " + p.Until.UTC().Format("15:04:05 MST") + ", in " + span(task.For(p.Until.Sub(now)))
	}
	return fmt.Sprintf("program %s is held, because it cannot be started; %s; the last failure was: %s", p.Program, next,
		p.Why)
}

// HeldPrograms describes the held programs, each in one line.
func (a *Admin) HeldPrograms(ctx context.Context) (texts []string, err error) {
	s, f := a.redis(), fleet{}
	if f.at, err = s.Now(ctx); err != nil {
		return nil, err
	}
	if f.sources, err = s.Limits.HeldSources(ctx); err != nil {
		return nil, err
	}
	for _, p := range f.pauses() {
		texts = append(texts, p.Text(f.at.Std()))
	}
	return texts, nil
}

// pauses returns the held programs, and then those whose failures make slots pause.
func (f *fleet) pauses() []Pause {
	claiming := 0
	slow := map[string]*Pause{}
	for i := range f.workers {
		w := &f.workers[i]
		if !w.Claims(f.at) {
			continue
		}
		claiming++
		for _, one := range w.Pauses {
			if one.Program == "" || one.For == 0 {
				continue // a shortage of the worker, or a remark
			}
			p := slow[one.Program]
			if p == nil {
				p = &Pause{Program: one.Program, Why: one.Why}
				slow[one.Program] = p
			}
			p.Workers++
			p.AfterFailure = max(p.AfterFailure, one.For.Std())
		}
	}
	pauses := make([]Pause, 0, len(f.sources)+len(slow))
	for _, s := range f.sources {
		delete(slow, s.Program) // the same failures
		why := fmt.Sprintf("%s (workers: %s)", s.Why, joinNames(s.Workers))
		pauses = append(pauses, Pause{
			Program: s.Program, Workers: claiming, Of: claiming, Until: s.NextTrial().Std(), Why: why, Source: s.Name,
		})
	}
	for _, p := range slow {
		p.Of = claiming
		pauses = append(pauses, *p)
	}
	sortPauses(pauses)
	return pauses
}

// sortPauses puts held programs first, and then those that fail on the most workers.
func sortPauses(all []Pause) {
	slices.SortFunc(all, func(a, b Pause) int {
		return cmp.Or(cmp.Compare(min(a.AfterFailure, 1), min(b.AfterFailure, 1)), cmp.Compare(b.Workers, a.Workers),
			cmp.Compare(a.Program, b.Program))
	})
}
