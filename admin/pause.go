package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
)

// A Pause says that workers claim no tasks of a program for a while, because its rounds fail there (docs/operations.md,
// "Programs that a worker pauses").
type Pause struct {
	Program string
	Workers int      // that pause it
	Of      int      // that live and claim tasks
	Until   tdf.Time // when the first of these tries one round again
	Why     string   // as one of these says
}

// All says that no worker runs the program.
func (p *Pause) All() bool { return p.Workers == p.Of }

// Text names program, workers, end and reason of the pause.
func (p *Pause) Text(now tdf.Time) string {
	until := "a trial round"
	if p.Until > now {
		until = p.Until.Std().UTC().Format("15:04:05 MST") + ", in " + span(p.Until.Sub(now))
	}
	return fmt.Sprintf("program %s is paused on %d of %d workers until %s: %s", p.Program, p.Workers, p.Of, until, p.Why)
}

// pausesOf returns what workers pause that live and claim tasks, by program.
func pausesOf(workers []Worker) []Pause {
	claiming := 0
	all := map[string]*Pause{}
	for i := range workers {
		w := &workers[i]
		if !w.Alive || !w.claims() {
			continue
		}
		claiming++
		for _, one := range w.Pauses {
			until := w.Seen.Add(one.For)
			p := all[one.Program]
			if p == nil {
				p = &Pause{Program: one.Program, Until: until, Why: one.Why}
				all[one.Program] = p
			}
			p.Workers, p.Until = p.Workers+1, min(p.Until, until)
		}
	}
	pauses := make([]Pause, 0, len(all))
	for _, p := range all {
		p.Of = claiming
		pauses = append(pauses, *p)
	}
	slices.SortFunc(pauses, func(a, b Pause) int {
		return cmp.Or(cmp.Compare(b.Workers, a.Workers), cmp.Compare(a.Program, b.Program))
	})
	return pauses
}

// programsSample are the programs of a watch's open tasks, as far as a sample tells.
type programsSample struct {
	programs map[string]bool
	at       tdf.Time
}

// keepOwnPauses leaves out pauses of programs that no open task has that is watched.
func (w *Watch) keepOwnPauses(ctx context.Context, s *Status) error {
	if len(s.Pauses) == 0 {
		return nil
	}
	if w.open.programs == nil || s.At.Sub(w.open.at) >= samplePauses {
		programs, err := openPrograms(ctx, w.store, w.query.Group)
		if err != nil {
			return err
		}
		w.open = programsSample{programs, s.At}
	}
	s.Pauses = slices.DeleteFunc(s.Pauses, func(p Pause) bool { return !w.open.programs[p.Program] })
	return nil
}

// openPrograms returns the programs of the open tasks with the lowest and the highest ids.
func openPrograms(ctx context.Context, s store, group string) (map[string]bool, error) {
	programs := map[string]bool{}
	for _, oldest := range []bool{false, true} {
		page, err := listing.Find(ctx, s, listing.Query{Group: group, States: []tdf.State{tdf.Open}, OldestFirst: oldest}, "", sampledOpen)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tasks {
			programs[t.Program] = true
		}
	}
	return programs, nil
}
