package admin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/stdtime"
)

// A Pause says that some workers claim no tasks of a program for a while, because its rounds fail on these workers
// (docs/operations.md, "Programs that a worker pauses").
type Pause struct {
	Program string    `json:"program"`
	Workers int       `json:"workers"`         // the number of workers that pause the program
	Of      int       `json:"of"`              // the number of all workers that claim tasks
	Until   time.Time `json:"until" as:"unix"` // when the first of these workers tries one round
	Why     string    `json:"why"`             // the reason that one of the workers reports
}

// All reports whether all workers pause the program.
func (p *Pause) All() bool { return p.Workers == p.Of }

// Text describes the pause in one line. The caller passes the present time of Redis's clock.
func (p *Pause) Text(now time.Time) string {
	until := "a trial round"
	if p.Until.After(now) {
		until = p.Until.UTC().Format("15:04:05 MST") + ", in " + span(stdtime.Seconds(p.Until.Sub(now)))
	}
	return fmt.Sprintf("program %s is paused on %d of %d workers until %s: %s", p.Program, p.Workers, p.Of, until, p.Why)
}

// pauses returns the programs that workers pause. They are ordered by the number of these workers, the highest first.
func (f *fleet) pauses() []Pause {
	claiming := 0
	all := map[string]*Pause{}
	until := map[string]tdf.Time{}
	for i := range f.workers {
		w := &f.workers[i]
		if !f.claims(w) {
			continue
		}
		claiming++
		for _, one := range w.Pauses {
			at := w.Seen.Add(one.For)
			p := all[one.Program]
			if p == nil {
				p = &Pause{Program: one.Program, Why: one.Why}
				all[one.Program], until[one.Program] = p, at
			}
			p.Workers++
			until[one.Program] = min(until[one.Program], at)
		}
	}
	pauses := make([]Pause, 0, len(all))
	for name, p := range all {
		p.Of, p.Until = claiming, stdtime.Time(until[name])
		pauses = append(pauses, *p)
	}
	slices.SortFunc(pauses, func(a, b Pause) int {
		return cmp.Or(cmp.Compare(b.Workers, a.Workers), cmp.Compare(a.Program, b.Program))
	})
	return pauses
}
