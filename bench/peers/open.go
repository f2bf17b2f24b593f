package main

import (
	"time"

	"github.com/tdf-framework/tdf/bench/redisserver"
)

// openBulkBar compares one caller that opens tasks in batches with many callers that open them one by one.
func openBulkBar() *bar {
	return &bar{
		name: "open-bulk", unit: "tasks/s",
		sides: []side{
			{tdfSide, redisserver.Shipped, measureOpening(tdfSystem{}, job{Batch: 1000})},
			{asynqSide, nil, measureOpening(asynqSystem{}, job{Callers: 16})},
			{bullmqSide, nil, measureOpening(bullmqSystem{}, job{Batch: 1000})},
		},
		wants: []want{atLeast(2, "× asynq with 16 callers", ratio(tdfSide, asynqSide))},
	}
}

// openSingleBar compares single callers that open tasks one by one.
func openSingleBar() *bar {
	return &bar{
		name: "open-single", unit: "tasks/s",
		sides: []side{
			{tdfSide, redisserver.Shipped, measureOpening(tdfSystem{}, job{Batch: 1})},
			{asynqSide, nil, measureOpening(asynqSystem{}, job{Callers: 1})},
			{bullmqSide, nil, measureOpening(bullmqSystem{}, job{Batch: 1})},
		},
		wants: []want{atLeast(0.9, "× asynq", ratio(tdfSide, asynqSide))},
	}
}

// openSharedBar compares many callers that open tasks one by one in one process.
func openSharedBar() *bar {
	return &bar{
		name: "open-shared", unit: "tasks/s",
		sides: []side{
			{tdfSide, redisserver.Shipped, measureOpening(tdfSystem{}, job{Callers: 16})},
			{asynqSide, nil, measureOpening(asynqSystem{}, job{Callers: 16})},
		},
		wants: []want{atLeast(1.5, "× asynq", ratio(tdfSide, asynqSide))},
	}
}

// measureOpening returns a function that measures the opening of tasks.
func measureOpening(s system, opening job) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) {
		j := opening
		j.Tasks = t.tasks
		opener, err := s.opener(t, j)
		if err != nil {
			return figure{}, err
		}
		f, err := t.costOf(t.tasks, func() (time.Duration, error) {
			var took opened
			err := opener.Call("open", &took)
			return time.Duration(took.Seconds * float64(time.Second)), err
		})
		if err != nil {
			return f, err
		}
		return f, s.checkOpened(t, t.tasks)
	}
}
