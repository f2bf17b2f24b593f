package main

import "github.com/tdf-framework/tdf/bench/redisserver"

// memoryBar compares the memory that Redis needs for an open task.
func memoryBar() *bar {
	return &bar{
		name: "memory", unit: "bytes per open task",
		sides: []side{
			{tdfSide, redisserver.Shipped, measureMemory(tdfSystem{}, job{Batch: 1000})},
			{tdfSide + ", Redis's defaults", nil, measureMemory(tdfSystem{}, job{Batch: 1000})},
			{asynqSide, nil, measureMemory(asynqSystem{}, job{Callers: 16})},
			{bullmqSide, nil, measureMemory(bullmqSystem{}, job{Batch: 1000})},
		},
		wants: []want{atMost(1.1, "× asynq", ratio(tdfSide, asynqSide))},
	}
}

// measureMemory returns a function that measures the memory of open tasks. It ends the processes of the system before
// it measures the memory.
func measureMemory(s system, opening job) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) {
		before, err := t.redis.Memory(t.ctx)
		if err != nil {
			return figure{}, err
		}
		j := opening
		j.Tasks = t.tasks
		if err := t.openAll(s, j); err != nil {
			return figure{}, err
		}
		if err := t.stopChildren(); err != nil {
			return figure{}, err
		}
		after, err := t.redis.Memory(t.ctx)
		if err != nil {
			return figure{}, err
		}
		return figure{Value: (after - before) / float64(t.tasks)}, s.checkOpened(t, t.tasks)
	}
}
