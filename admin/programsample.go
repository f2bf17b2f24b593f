package admin

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
)

// A programsSample holds the programs that a sample of the watched open tasks uses.
type programsSample struct {
	programs map[string]bool
	at       tdf.Time
}

// keepOwnPauses removes the pauses of programs that no watched open task uses.
func (w *Watch) keepOwnPauses(ctx context.Context, l *look) error {
	if len(l.pauses) == 0 {
		return nil
	}
	if w.open.programs == nil || l.at.Sub(w.open.at) >= samplePauses {
		programs, err := openPrograms(ctx, w.store, w.query.Group)
		if err != nil {
			return err
		}
		w.open = programsSample{programs, l.at}
	}
	l.pauses = slices.DeleteFunc(l.pauses, func(p Pause) bool { return !w.open.programs[p.Program] })
	return nil
}

// openPrograms returns the programs of two samples of a group's open tasks: the tasks with the lowest ids, and the
// tasks with the highest ids.
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
