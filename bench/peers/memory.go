package main

import "github.com/tdf-framework/tdf/bench/redisserver"

// memoryBar compares the memory that Redis needs for an open task.
func memoryBar() *bar {
	return &bar{
		name: "memory", unit: "bytes per open task",
		sides: []side{
			{tdfSide, redisserver.Shipped, stores(tdfSystem{}, job{Batch: 1000})},
			{tdfSide + ", Redis's defaults", nil, stores(tdfSystem{}, job{Batch: 1000})},
			{asynqSide, nil, stores(asynqSystem{}, job{Callers: 16})},
			{bullmqSide, nil, stores(bullmqSystem{}, job{Batch: 1000})},
		},
		wants: []want{atMost(1.1, "× asynq", ratio(tdfSide, asynqSide))},
	}
}

// stores returns a measurement of the memory of open tasks. The processes of the system have ended by then.
func stores(s system, opening job) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) {
		before, err := t.redis.Memory(t.ctx)
		if err != nil {
			return figure{}, err
		}
		j := opening
		j.Tasks = t.tasks
		opener, err := s.opener(t, j)
		if err != nil {
			return figure{}, err
		}
		if err := opener.Call("open", nil); err != nil {
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
