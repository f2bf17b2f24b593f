package main

import "github.com/tdf-framework/tdf/bench/redisserver"

// backlogBar compares the speed of processing with a large backlog to the speed with a backlog of a tenth of that size.
func backlogBar() *bar {
	const small, large = "TDF, small backlog", "TDF, large backlog"
	return &bar{
		name: "backlog", unit: "tasks/s",
		sides: []side{
			{small, redisserver.Shipped, func(t *trial) (figure, error) { return t.processBacklog(t.backlog / 10) }},
			{large, redisserver.Shipped, func(t *trial) (figure, error) { return t.processBacklog(t.backlog) }},
		},
		wants: []want{atLeast(0.95, "× process with a tenth of the backlog", ratio(large, small))},
	}
}

// processBacklog measures the processing of the first tasks of a backlog.
func (t *trial) processBacklog(open int) (figure, error) {
	return t.process(tdfSystem{}, job{Batch: 1000}, open, min(t.tasks, open))
}
