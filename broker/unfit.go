package broker

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// triedIn is how many rounds of a task show which workers have tried it.
const triedIn = 100

// othersLeft reports whether a live worker could run a task that one worker cannot run, and has had no round of the
// task yet. It may be busy: the task then waits for it. If Redis does not answer, othersLeft returns true, so that an
// outage makes no task fail.
func othersLeft(ctx context.Context, s common, t *tdf.Task, worker string) bool {
	now, err := s.Now(ctx)
	if err != nil {
		return true
	}
	workers, err := s.Workers(ctx)
	if err != nil {
		return true
	}
	x, err := s.ReadOne(ctx, t.ID, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(triedIn)})
	if err != nil || x.Task == nil {
		return true
	}
	tried := append([]string{worker}, x.Task.NotOn...)
	for _, r := range x.Task.Rounds {
		tried = append(tried, r.Worker)
	}
	need := x.Task.Requirement()
	return slices.ContainsFunc(workers, func(w presence.WorkerStatus) bool {
		return w.Alive(now) && w.State != presence.WorkerDraining && w.Drained == "" &&
			class.Serves(&w.Offer, need) && !slices.Contains(tried, w.Name)
	})
}
