package main

import (
	"errors"
	"time"

	"github.com/tdf-framework/tdf/bench/internal/child"
	"github.com/tdf-framework/tdf/bench/redisserver"
)

// lifeCycleBar compares whole systems at work: tasks are opened and processed at the same time. TDF also settles and
// archives them. The workers of TDF and BullMQ are idle at first. The worker of asynq starts when the first task waits,
// because an idle worker of asynq looks for tasks only once a second.
func lifeCycleBar() *bar {
	return &bar{
		name: "life-cycle", unit: "tasks/s",
		sides: []side{
			{tdfSide, redisserver.Shipped, measureLives(tdfSystem{whole: true}, job{Batch: 1000}, idleFirst)},
			{asynqSide, nil, measureLives(asynqSystem{}, job{Callers: 16}, tasksFirst)},
			{bullmqSide, nil, measureLives(bullmqSystem{}, job{Batch: 1000}, idleFirst)},
		},
		wants: []want{atLeast(1.6, "× asynq", ratio(tdfSide, asynqSide))},
	}
}

// Values that say when a worker starts.
const (
	idleFirst  = false // before the first task is opened
	tasksFirst = true  // when the first task waits
)

// measureLives returns a function that measures the whole life of tasks.
func measureLives(s system, opening job, late bool) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) {
		j := opening
		j.Tasks = t.tasks
		opener, err := s.opener(t, j)
		if err != nil {
			return figure{}, err
		}
		worker, err := s.worker(t, job{Slots: slots})
		if err != nil {
			return figure{}, err
		}
		if !late {
			if err := worker.Call("work", nil); err != nil {
				return figure{}, err
			}
		}
		f, err := t.costOf(t.tasks, func() (time.Duration, error) { return t.openAndProcess(s, opener, worker, late) })
		if err != nil {
			return f, err
		}
		return f, t.checkWorker(s, worker)
	}
}

func (t *trial) openAndProcess(s system, opener, worker *child.Process, late bool) (time.Duration, error) {
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- opener.Call("open", nil) }()
	if late {
		if err := t.poll(s.waiting, func(waiting int64) bool { return waiting > 0 }); err != nil {
			return 0, err
		}
		if err := worker.Call("work", nil); err != nil {
			return 0, err
		}
	}
	err := t.untilProcessed(s, int64(t.tasks))
	took := time.Since(began)
	return took, errors.Join(err, <-done)
}
