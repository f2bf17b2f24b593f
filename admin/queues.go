package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
)

// A QueueStatus is the state of a queue.
type QueueStatus struct {
	Queue string `json:"queue"` // default for the tasks without a queue
	// Open counts the open tasks that workers may claim now or later. A task that waits for other tasks or for a limit is not counted.
	Open    int64 `json:"open"`
	AtLeast bool  `json:"at_least,omitempty"` // there are more open tasks

	Running        int  `json:"running"`                    // tasks that run, or wait for the server after their run
	RunningAtLeast bool `json:"running_at_least,omitempty"` // there may be more of them
	Paused         bool `json:"paused,omitempty"`
}

// runningRead is the largest number of running tasks that Queues reads.
const runningRead = 2000

// Queues returns the queues with open or running tasks, and those that are paused, ordered by name. Redis knows the queue of an open task from
// its list, but finished tasks are in lists of all queues, so Queues does not count them.
func (a *Admin) Queues(ctx context.Context) ([]QueueStatus, error) {
	open, err := a.redis().QueueCounts(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]*QueueStatus{}
	of := func(name string) *QueueStatus {
		name = cmp.Or(name, tdf.DefaultQueue)
		if all[name] == nil {
			all[name] = &QueueStatus{Queue: name}
		}
		return all[name]
	}
	for _, c := range open {
		of(c.Queue).Open, of(c.Queue).AtLeast = c.Open, c.AtLeast
	}
	page, err := listing.Find(ctx, a.redis(), tdf.Query{States: []tdf.State{tdf.Running, tdf.Executed}}, "", runningRead)
	if err != nil {
		return nil, err
	}
	for _, t := range page.Tasks {
		of(t.Queue).Running++
	}
	paused, err := a.redis().Paused(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range paused {
		if p.Queue != "" {
			of(p.Queue).Paused = true
		}
	}
	queues := []QueueStatus{}
	for _, q := range all {
		q.RunningAtLeast = page.Next != ""
		queues = append(queues, *q)
	}
	slices.SortFunc(queues, func(a, b QueueStatus) int { return cmp.Compare(a.Queue, b.Queue) })
	return queues, nil
}
