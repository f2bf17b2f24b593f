package taskmaster

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

type queueView struct {
	QueueName     string `json:"queueName"`
	Pending       int64  `json:"pending"`
	Running       int64  `json:"running"`
	Failed        int64  `json:"failed"` // pending tasks that have failed at least once
	Dead          int64  `json:"dead"`
	ActiveWorkers int64  `json:"activeWorkers"`
}

// Bounds of the list of queues.
const (
	mostQueues     = 1000   // those with the most transitions; queues with open tasks or workers come in addition
	failedAtOnce   = 500    // open tasks that are read in one step
	failedExamined = 20_000 // open tasks of all queues together whose failures are counted
)

// queues lists the queues that have tasks of the interface, or workers. Tasks are counted by their groups, so the time
// does not depend on their number, except for those that have failed and wait for another attempt.
func (a *app) queues(ctx context.Context, _ *wire.Call) (*wire.Answer, error) {
	workers, now, err := a.known(ctx)
	if err != nil {
		return nil, err
	}
	activities, err := a.store.Counters.Activity(ctx, &counts.ActivityCounter{}, mostQueues)
	if err != nil {
		return nil, err
	}
	open, err := a.store.Counters.QueueCounts(ctx)
	if err != nil {
		return nil, err
	}
	active, everFailed := map[string]int64{}, map[string]bool{}
	for i := range workers {
		if a.stateOf(&workers[i], now) == activeWorker {
			active[workers[i].Offer.Shares()[0].Queue]++
		}
	}
	names := slices.Collect(maps.Keys(active))
	for _, q := range open {
		names = append(names, q.Queue)
	}
	for i := range activities {
		names = append(names, activities[i].Queue)
		everFailed[activities[i].Queue] = hasFailed(&activities[i])
	}
	slices.Sort(names)
	views, left := []queueView{}, failedExamined
	for _, name := range slices.Compact(names) {
		tasks, err := a.store.Counts(ctx, groupPrefix+name)
		if err != nil {
			return nil, err
		}
		v := queueView{
			QueueName: name, Pending: tasks[task.Open], Running: tasks[task.Running] + tasks[task.Executed],
			Dead: tasks.Failures(), ActiveWorkers: active[name],
		}
		if tasks.Total() == 0 && v.ActiveWorkers == 0 {
			continue
		}
		if v.Pending > 0 && (everFailed[name] || len(activities) >= mostQueues) {
			if v.Failed, err = a.failed(ctx, groupPrefix+name, &left); err != nil {
				return nil, err
			}
		}
		views = append(views, v)
	}
	return wire.JSON(http.StatusOK, views)
}

// hasFailed reports whether a task of a queue has ever become open again after a failure, a time-out or a loss.
func hasFailed(a *counts.Activity) (has bool) {
	a.Transitions(func(verb rules.Verb, to task.State, n int64) {
		has = has || to == task.Open && n > 0 && (verb == rules.VerbFail || verb == rules.VerbTimeOut)
	})
	return has
}

// failed counts the open tasks of a group that have failed at least once, among the first of them.
func (a *app) failed(ctx context.Context, group string, left *int) (n int64, err error) {
	for offset := int64(0); *left > 0; offset += failedAtOnce {
		ids, err := a.store.List(ctx, task.Open, group, offset, failedAtOnce)
		if err != nil || len(ids) == 0 {
			return n, err
		}
		*left -= len(ids)
		stored, err := a.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Facts})
		if err != nil {
			return n, err
		}
		for _, x := range stored {
			if x.Task != nil && x.Task.State == task.Open && x.Task.Fails+x.Task.Timeouts > 0 {
				n++
			}
		}
	}
	return n, nil
}
