package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// A Queue is a queue with tasks, or a queue that is paused.
type Queue struct {
	Queue string `json:"queue"` // default for the tasks without a queue
	// Open counts the open tasks that workers may claim now. A task that is not due yet, or that is held, is not counted.
	Open int64 `json:"open"`
	// the longest time since the next task of a requirement became claimable; 0 if none is due
	Waited time.Duration `json:"oldest_wait_seconds"`
	Paused bool          `json:"paused,omitempty"`

	// Tasks counts all tasks of the queue by state. Of more than 20,000 queues, the tasks of those that come last by
	// name count as tasks of the queue default.
	Tasks task.Counts `json:"tasks"`
}

// MarshalJSON writes the counts of all states.
func (q Queue) MarshalJSON() ([]byte, error) {
	o := jsonview.Of(q)
	o.Set("tasks", allStates(q.Tasks))
	return o.MarshalJSON()
}

// A QueueCounter remembers the counts of queues for [Admin.StatsAgain]. The zero value remembers none.
type QueueCounter = counts.QueueCounter

// Queues returns the queues with tasks, and those that are paused, ordered by name. The number of tasks hardly affects
// how long this takes.
func (a *Admin) Queues(ctx context.Context) ([]Queue, error) {
	s := a.redis()
	var now task.Time
	var all task.Counts
	var r queueReading
	err := readings(
		func() (err error) { now, err = s.Now(ctx); return err },
		func() (err error) { all, err = s.Counts(ctx); return err },
		func() error { return r.read(ctx, s, &QueueCounter{}) },
	)
	if err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	return r.queues(now, all), nil
}

// A queueReading has what Redis has about queues.
type queueReading struct {
	counts []counts.QueueCount
	paused []limits.Pausing
}

func (r *queueReading) read(ctx context.Context, s *redisstate.Store, c *QueueCounter) error {
	return readings(
		func() (err error) { r.counts, err = s.Counters.CountQueues(ctx, c); return err },
		func() (err error) { r.paused, err = s.Limits.Paused(ctx); return err },
	)
}

// queues returns the queues, ordered by name. The argument all has the tasks of the namespace by state.
func (r *queueReading) queues(now task.Time, all task.Counts) []Queue {
	sorted := make([]Queue, 0, len(r.counts)+1)
	for _, x := range r.counts {
		q := Queue{Queue: x.Queue, Open: x.Open, Tasks: x.Tasks}
		if x.First > longAgo {
			q.Waited = max(0, now.Sub(x.First)).Std()
		}
		sorted = append(sorted, q)
	}
	of := func(name string) *Queue {
		i, found := slices.BinarySearchFunc(sorted, name, func(q Queue, name string) int {
			return cmp.Compare(q.Queue, name)
		})
		if !found {
			sorted = slices.Insert(sorted, i, Queue{Queue: name})
		}
		return &sorted[i]
	}
	if rest := without(all, r.counts); rest.Total() > 0 {
		of(class.DefaultQueue).Tasks = rest
	}
	for _, p := range r.paused {
		if p.Queue != "" {
			of(p.Queue).Paused = true
		}
	}
	return sorted
}

// without returns the tasks that are in none of the queues. All numbers were read at different moments, so a difference
// may be below 0, and then counts as 0.
func without(all task.Counts, queues []counts.QueueCount) task.Counts {
	rest := task.Counts{}
	for state, n := range all {
		for i := range queues {
			n -= queues[i].Tasks[state]
		}
		rest[state] = max(0, n)
	}
	return rest
}
