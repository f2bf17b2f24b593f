package admin

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
)

// A programsSample is a sample of the programs of a watch's open tasks.
type programsSample struct {
	programs map[string]bool
	at       tdf.Time
}

// keepOwnPauses removes the pauses of all programs that no watched open task has.
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

// openPrograms returns the programs of two samples of open tasks: those with the lowest and those with the highest ids.
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
