package main

import (
	"errors"
	"time"

	"github.com/tdf-framework/tdf/bench/redisserver"
)

// processBar compares how fast one worker process of each system processes tasks. All tasks are opened before the
// worker starts.
func processBar() *bar {
	return &bar{
		name: "process", unit: "tasks/s",
		sides: []side{
			{tdfSide, redisserver.Shipped, measureProcessing(tdfSystem{}, job{Batch: 1000})},
			{asynqSide, nil, measureProcessing(asynqSystem{}, job{Callers: 16})},
			{bullmqSide, nil, measureProcessing(bullmqSystem{}, job{Batch: 1000})},
		},
		wants: []want{
			atLeast(1.3, "× BullMQ", ratio(tdfSide, bullmqSide)),
			atLeast(2.5, "× asynq", ratio(tdfSide, asynqSide)),
		},
	}
}

// evalshaBar measures the time in which scripts run in Redis while a worker processes tasks: claims and reports.
func evalshaBar() *bar {
	process := measureProcessing(tdfSystem{}, job{Batch: 1000})
	return &bar{
		name: "evalsha", unit: "µs of EVALSHA",
		sides: []side{{tdfSide, redisserver.Shipped, func(t *trial) (figure, error) {
			f, err := process(t)
			f.Value = f.Scripts
			return f, err
		}}},
		wants: []want{atMost(30, "µs of EVALSHA", value(tdfSide))},
	}
}

// measureProcessing returns a function that measures one worker process, from the first claim to the last commit.
func measureProcessing(s system, opening job) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) { return t.process(s, opening, t.tasks, t.tasks) }
}

// process opens tasks, and measures the processing of the first n of them.
func (t *trial) process(s system, opening job, open, n int) (figure, error) {
	opening.Tasks = open
	if err := t.openAll(s, opening); err != nil {
		return figure{}, err
	}
	if open > n { // Redis is still busy with its own tables
		if err := t.sleep(t.warmup); err != nil {
			return figure{}, err
		}
	}
	worker, err := s.worker(t, job{Slots: slots})
	if err != nil {
		return figure{}, err
	}
	f, err := t.costOf(n, func() (time.Duration, error) {
		took, err := t.processBy(s, worker.Call, int64(open), int64(n))
		if open > n { // stop the worker, because otherwise it would process the tasks after the first n
			err = errors.Join(err, t.stopChildren())
		}
		return took, err
	})
	if err != nil {
		return f, err
	}
	if err := t.stopChildren(); err != nil {
		return f, err
	}
	processed, err := s.processed(t)
	if err != nil {
		return f, err
	}
	// Redis was also busy with the tasks that the worker processed before it stopped
	more := float64(processed) / float64(n)
	f.CPU, f.Commands, f.Scripts = f.CPU/more, f.Commands/more, f.Scripts/more
	return f, s.checkProcessed(t, n)
}

// processBy starts a worker, and returns the time from the first claim until n tasks are processed.
func (t *trial) processBy(s system, call func(verb string, reply any) error, open, n int64) (time.Duration, error) {
	started := make(chan error, 1)
	go func() { started <- call("work", nil) }()
	if err := t.poll(s.waiting, func(waiting int64) bool { return waiting < open }); err != nil {
		return 0, err
	}
	began := time.Now()
	err := t.untilProcessed(s, n)
	took := time.Since(began)
	return took, errors.Join(err, <-started)
}
