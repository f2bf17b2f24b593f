package main

import (
	"time"

	"github.com/tdf-framework/tdf/bench/redisserver"
)

// redisCPUBar compares the CPU time that Redis needs for the whole life of a task. Tasks are opened one by one. While
// tasks are opened, TDF's server and manager run, but no worker. Then a worker processes the tasks. The sides "worker
// running" measure systems whose workers also run while tasks are opened.
func redisCPUBar() *bar {
	const running = ", worker running"
	return &bar{
		name: "redis-cpu", unit: "µs of Redis CPU",
		sides: []side{
			{tdfSide, redisserver.Shipped, redisCPU(phases(tdfSystem{whole: true}))},
			{bullmqSide, nil, redisCPU(phases(bullmqSystem{}))},
			{tdfSide + running, redisserver.Shipped, redisCPU(measureLives(tdfSystem{whole: true}, job{Batch: 1},
				idleFirst))},
			{bullmqSide + running, nil, redisCPU(measureLives(bullmqSystem{}, job{Batch: 1}, idleFirst))},
		},
		wants: []want{atMost(1, "× BullMQ", ratio(tdfSide, bullmqSide))},
	}
}

// redisCPU makes the CPU time the figure of a measurement.
func redisCPU(measure func(*trial) (figure, error)) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) {
		f, err := measure(t)
		f.Value = f.CPU
		return f, err
	}
}

// phases returns a function for a measurement that opens all tasks before it starts the worker.
func phases(s system) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) {
		opener, err := s.opener(t, job{Tasks: t.tasks, Batch: 1})
		if err != nil {
			return figure{}, err
		}
		worker, err := s.worker(t, job{Slots: slots})
		if err != nil {
			return figure{}, err
		}
		f, err := t.costOf(t.tasks, func() (time.Duration, error) {
			began := time.Now()
			if err := opener.Call("open", nil); err != nil {
				return 0, err
			}
			_, err := t.processBy(s, worker.Call, int64(t.tasks), int64(t.tasks))
			return time.Since(began), err
		})
		if err != nil {
			return f, err
		}
		return f, t.checkWorker(s, worker)
	}
}
