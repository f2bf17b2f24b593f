package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A longRun is a running task that takes far longer than other runs of its program.
type longRun struct {
	task  *task.Task
	runs  task.Seconds
	usual task.Seconds // the run time that 95 of 100 runs do not exceed
}

// Limits of the search for long runs. A run is long if it takes more than farLonger times the usual run time, and more
// than leastLong.
const (
	sampledEnded   = 1000 // the maximum number of finished tasks that are read
	sampledRunning = 500  // the maximum number of running tasks that are read
	leastEnded     = 10   // the minimum number of finished tasks of a program from which its usual run time is computed
	farLonger      = 10
	leastLong      = task.Seconds(60)
)

func vitalsOfRuns(ctx context.Context, r *redisstate.Store, v *vitals) error {
	running, err := listing.Find(ctx, r, task.Query{States: []task.State{task.Running}, Order: task.OldestFirst}, "",
		sampledRunning)
	if err != nil || len(running.Tasks) == 0 {
		return err
	}
	v.original = slices.DeleteFunc(slices.Clone(running.Tasks), func(t *task.Task) bool {
		r := t.Current()
		return r.Claim != "" || r.Worker == ""
	})
	ended, err := listing.Find(ctx, r, ranToTheEnd(""), "", sampledEnded)
	if err != nil {
		return err
	}
	v.long = longRuns(v.at, running.Tasks, ended.Tasks)
	return nil
}

func longRuns(now task.Time, running, ended []*task.Task) []longRun {
	took := map[string][]task.Seconds{}
	for _, t := range ended {
		if seconds, ran := runTime(t.Current()); ran {
			took[t.Program] = append(took[t.Program], seconds)
		}
	}
	var long []longRun
	for _, t := range running {
		times := slices.Sorted(slices.Values(took[t.Program]))
		began := max(t.Current().Entered[task.Running], t.Current().Started)
		if len(times) < leastEnded || began == 0 {
			continue
		}
		usual := times[(len(times)*95-1)/100]
		if runs := now.Sub(began); runs > max(leastLong, farLonger*usual) {
			long = append(long, longRun{t, runs, usual})
		}
	}
	return long
}

// originalWorkers names the workers of the original TDF that hold tasks. Such a worker sends no heartbeats. If it
// cannot fetch the program of its task, it dies, and the task runs until its timeout.
func (v *vitals) originalWorkers(d *diagnoses) {
	if len(v.original) == 0 {
		return
	}
	var names []string
	stuck := map[string][]int64{}
	for _, t := range v.original {
		worker := t.Current().Worker
		names = append(names, worker)
		if !task.OriginalFetches(t.Source) {
			stuck[worker] = append(stuck[worker], t.ID)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	d.ok("workers", "workers of the original TDF, which send no heartbeats, hold tasks: %s", joinNames(names))
	for _, worker := range names {
		if ids := stuck[worker]; len(ids) > 0 {
			d.problem("workers", Fact{
				Code: FactOriginalWorker, About: worker,
				Text: fmt.Sprintf("%s, a worker of the original TDF, holds %d tasks whose programs it cannot fetch; "+
					"the first is task %d", worker, len(ids), ids[0]),
				Fix: fix("run tdf settings original_workers=yes, and requeue the tasks"),
			})
		}
	}
}
