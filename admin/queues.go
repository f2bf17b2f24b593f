package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Queue is a queue with tasks, or a queue that is paused.
type Queue struct {
	Queue string `json:"queue"` // default for the tasks without a queue
	// Open counts the open tasks that workers may claim now or later. A task that waits for other tasks or for a limit is not counted.
	Open    int64         `json:"open"`
	AtLeast bool          `json:"at_least,omitempty"`  // the queues have more than 20,000 priorities, and Open counts only some of this queue
	Waited  time.Duration `json:"oldest_wait_seconds"` // time since the oldest of these tasks became claimable; 0 if none is due
	Paused  bool          `json:"paused,omitempty"`

	// Tasks counts all tasks of the queue by state. Of more than 20,000 queues, the tasks of those that come last by name count as tasks of
	// the queue default.
	Tasks tdf.Counts `json:"tasks"`
}

// MarshalJSON writes the counts of all states.
func (q Queue) MarshalJSON() ([]byte, error) {
	o := jsonview.Of(q)
	o.Set("tasks", allStates(q.Tasks))
	return o.MarshalJSON()
}

// A QueueCounter remembers the counts of queues for [Admin.StatsAgain]. The zero value remembers none.
type QueueCounter struct {
	open  redisstate.QueueCounter
	tasks redisstate.TaskCounter
}

// Queues returns the queues with tasks, and those that are paused, ordered by name. The number of tasks hardly affects how long this takes.
func (a *Admin) Queues(ctx context.Context) ([]Queue, error) {
	s := a.redis()
	now, err := s.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	counts, err := s.Counts(ctx)
	if err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	return readQueues(ctx, s, &QueueCounter{}, now.Std(), counts)
}

// readQueues reads the queues. The argument all has the tasks of the namespace by state.
func readQueues(ctx context.Context, s *redisstate.Store, c *QueueCounter, now time.Time, all tdf.Counts) ([]Queue, error) {
	var tasks map[string]tdf.Counts
	counted := make(chan error, 1)
	go func() { // at the same time, because each of both takes many round trips
		var err error
		tasks, err = s.CountTasks(ctx, &c.tasks)
		counted <- err
	}()
	open, err := s.CountQueues(ctx, &c.open)
	if err := errors.Join(err, <-counted); err != nil {
		return nil, err
	}
	paused, err := s.Paused(ctx)
	if err != nil {
		return nil, err
	}
	queues := map[string]*Queue{}
	of := func(name string) *Queue {
		if queues[name] == nil {
			queues[name] = &Queue{Queue: name}
		}
		return queues[name]
	}
	if counts := without(all, tasks); counts.Total() > 0 {
		of(tdf.DefaultQueue).Tasks = counts
	}
	for name, counts := range tasks {
		of(name).Tasks = counts
	}
	for _, x := range open {
		q := of(x.Queue)
		q.Open, q.AtLeast = x.Open, x.AtLeast
		if x.First > longAgo {
			q.Waited = max(0, tdf.At(now).Sub(x.First)).Std()
		}
	}
	for _, p := range paused {
		if p.Queue != "" {
			of(p.Queue).Paused = true
		}
	}
	sorted := []Queue{}
	for _, name := range slices.SortedFunc(maps.Keys(queues), cmp.Compare[string]) {
		sorted = append(sorted, *queues[name])
	}
	return sorted, nil
}

// without returns the tasks that are in none of the queues. All numbers were read at different moments, so a difference may be below 0, and then
// counts as 0.
func without(all tdf.Counts, queues map[string]tdf.Counts) tdf.Counts {
	rest := tdf.Counts{}
	for state, n := range all {
		for _, of := range queues {
			n -= of[state]
		}
		rest[state] = max(0, n)
	}
	return rest
}
