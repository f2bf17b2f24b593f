package broker

import (
	"context"
	"slices"
	"sync"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// triedIn is how many rounds of a task show which workers have tried it.
const triedIn = 100

// heldAfter is how many failures of a sole worker hold a program.
const heldAfter = 3

// A worker does not get a task again that it could not start: for firstPutOff, and for twice as long each time. This is
// longer than the time to the next trial of a held program, so that another worker makes it.
const firstPutOff, longestPutOff = task.Seconds(8), task.Seconds(600)

// A witness sees the tasks that a worker could not start. All reports of a call have one witness, because for each of
// them, it would read the same again.
type witness struct {
	common
	worker string
	others func() (others, error) // reads at most once
	holds  func() bool            // whether the namespace may hold programs; reads at most once
}

// others are the other workers that claim tasks. They may be busy: a task waits for them.
type others struct {
	now     task.Time
	workers []presence.WorkerStatus
}

func newWitness(ctx context.Context, s common, worker string) *witness {
	return &witness{s, worker, sync.OnceValues(func() (o others, err error) {
		if o.now, err = s.Now(ctx); err != nil {
			return o, err
		}
		o.workers, err = s.Workers(ctx)
		o.workers = slices.DeleteFunc(o.workers, func(w presence.WorkerStatus) bool {
			return w.Name == worker || !w.Claims(o.now)
		})
		return o, err
	}), sync.OnceValue(func() bool {
		settings, _, _, err := s.Room(ctx)
		return err == nil && !settings.OriginalWorkers
	})}
}

// A sight is what a witness sees of a task.
type sight struct {
	now    task.Time
	alone  bool // no other worker could run the task
	left   bool // one of the others has not tried it
	rounds int  // how many rounds of it the worker has had
}

func (w *witness) see(ctx context.Context, id int64) (x sight, err error) {
	others, err := w.others()
	if err != nil {
		return x, err
	}
	stored, err := w.ReadOne(ctx, id, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(triedIn)})
	if err != nil {
		return x, err
	}
	if stored.Task == nil {
		return x, &rules.StateError{ID: id, Verb: rules.VerbRelease}
	}
	tried, need := stored.Task.NamesNotOn(), stored.Task.Requirement()
	for _, r := range stored.Task.Rounds {
		if tried = append(tried, r.Worker); r.Worker == w.worker {
			x.rounds++
		}
	}
	x.now, x.alone = others.now, true
	for i := 0; i < len(others.workers) && !x.left; i++ {
		if other := &others.workers[i]; class.Serves(&other.Offer, need) {
			x.alone, x.left = false, !slices.Contains(tried, other.Name)
		}
	}
	return x, nil
}

// seeUnfit sees the task of a report that its worker cannot run. If a live worker is left that has had no round of the
// task yet, the task is put off for this one. If Redis does not answer, a worker may be left, so that an outage makes
// no task fail.
func (d *Delivery) seeUnfit(ctx context.Context, w *witness) {
	x, err := w.see(ctx, d.Task.ID)
	d.seen, d.alone = true, err == nil && x.alone
	switch {
	case err != nil:
		d.PutOff = 1 // in the past: it keeps no worker from the task
	case x.left:
		d.PutOff = x.now.Add(min(firstPutOff*task.Seconds(int(1)<<min(max(x.rounds-1, 0), 7)), longestPutOff))
	}
}

// noteFailures notes which of the reported rounds could not be started. It is best effort: without the notes, a source
// is held later. A task without a source has a handler, which has started, so its program is never held. Workers of the
// original TDF find no held tasks, so beside them nothing is held.
func noteFailures(ctx context.Context, w *witness, all ...*Delivery) {
	noted := map[string]int{} // by source: further failures of one worker say nothing new
	for _, d := range all {
		if d.Err != nil || d.Task == nil || d.Task.Source == "" || !d.Unstarted && d.Way != Unfit {
			continue
		}
		if !w.holds() {
			return
		}
		source := d.Task.SourceName()
		if noted[source]++; noted[source] > heldAfter {
			continue
		}
		why := d.Reason
		if d.Way == Done {
			why = d.Result.Reason
		}
		if !d.seen {
			x, err := w.see(ctx, d.Task.ID)
			d.alone = err == nil && x.alone
		}
		_ = w.FailedToStart(ctx, w.worker, source, d.alone, Short(d.Task.Program), Short(why))
	}
}
