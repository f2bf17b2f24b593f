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

// A worker does not get a task again that it could not start: for firstPutOff, and for twice as long each time. This is
// longer than the time to the next trial of a held program, so that another worker makes it.
const firstPutOff, longestPutOff = tdf.Seconds(8), tdf.Seconds(600)

// A sight is what a broker sees of a task that a worker could not start.
type sight struct {
	now    tdf.Time
	others []string // the other live workers that could run the task; they may be busy: the task then waits for them
	tried  []string // the workers that have tried it
	rounds int      // how many rounds of it the worker has had
}

func see(ctx context.Context, s common, id int64, worker string) (x sight, err error) {
	if x.now, err = s.Now(ctx); err != nil {
		return x, err
	}
	workers, err := s.Workers(ctx)
	if err != nil {
		return x, err
	}
	stored, err := s.ReadOne(ctx, id, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(triedIn)})
	if err != nil {
		return x, err
	}
	if stored.Task == nil {
		return x, &tdf.StateError{ID: id, Verb: tdf.VerbRelease}
	}
	x.tried = stored.Task.NamesNotOn()
	for _, r := range stored.Task.Rounds {
		if x.tried = append(x.tried, r.Worker); r.Worker == worker {
			x.rounds++
		}
	}
	need := stored.Task.Requirement()
	for i := range workers {
		w := &workers[i]
		if w.Name != worker && w.Alive(x.now) && w.State != presence.WorkerDraining && w.Drained == "" &&
			class.Serves(&w.Offer, need) {
			x.others = append(x.others, w.Name)
		}
	}
	return x, nil
}

// seeUnfit sees the task of a report that its worker cannot run. If a live worker is left that has had no round of the
// task yet, the task is put off for this one. If Redis does not answer, a worker may be left, so that an outage makes no
// task fail.
func (d *Delivery) seeUnfit(ctx context.Context, s common, id int64, worker string) {
	x, err := see(ctx, s, id, worker)
	d.seen, d.alone = true, err == nil && len(x.others) == 0
	switch {
	case err != nil:
		d.PutOff = 1 // in the past: it keeps no worker from the task
	case slices.ContainsFunc(x.others, func(name string) bool { return !slices.Contains(x.tried, name) }):
		d.PutOff = x.now.Add(min(firstPutOff*tdf.Seconds(int(1)<<min(max(x.rounds-1, 0), 7)), longestPutOff))
	}
}

// noteFailures notes which of the reported rounds could not be started. It is best effort: without the notes, a source
// is held later. A task without a source has a handler, which has started, so its program is never held. Workers of the
// original TDF find no held tasks, so beside them nothing is held.
func noteFailures(ctx context.Context, s common, worker string, all ...*Delivery) {
	for _, d := range all {
		if d.Err != nil || d.Task == nil || d.Task.Source == "" || !d.Unstarted && d.Way != Unfit {
			continue
		}
		settings, _, _, err := s.Room(ctx)
		if err != nil || settings.OriginalWorkers {
			return
		}
		why := d.Reason
		if d.Way == Done {
			why = d.Result.Reason
		}
		if !d.seen {
			x, err := see(ctx, s, d.Task.ID, worker)
			d.alone = err == nil && len(x.others) == 0
		}
		_ = s.FailedToStart(ctx, worker, &d.Task.Properties, d.alone, Short(why))
	}
}
