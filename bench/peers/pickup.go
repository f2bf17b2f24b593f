package main

import (
	"time"

	"github.com/tdf-framework/tdf/bench/internal/bars"
	"github.com/tdf-framework/tdf/bench/redisserver"
)

// pickupBar compares the time from the call that opens a task to the start of its handler, in an idle system.
func pickupBar() *bar {
	return &bar{
		name: "pickup", unit: "ms",
		sides: []side{
			{tdfSide, redisserver.Shipped, picksUp(tdfSystem{whole: true})},
			{bullmqSide, nil, picksUp(bullmqSystem{})},
		},
		wants: []want{atMost(0.5, "× BullMQ", ratio(tdfSide, bullmqSide))},
	}
}

// picksUp returns a function that measures the median time until a task starts.
func picksUp(s system) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) {
		opener, err := s.opener(t, job{Tasks: t.pickups})
		if err != nil {
			return figure{}, err
		}
		worker, err := t.idleWorker(s, job{Slots: slots, Timed: true})
		if err != nil {
			return figure{}, err
		}
		if err := opener.Call("trickle", nil); err != nil {
			return figure{}, err
		}
		if err := t.untilProcessed(s, int64(t.pickups)); err != nil {
			return figure{}, err
		}
		var got tally
		if err := worker.Call("report", &got); err != nil {
			return figure{}, err
		}
		for _, err := range []error{
			expect("error in a payload", got.Wrong, ""),
			expect("tasks that the worker got", len(got.Waits), t.pickups),
		} {
			if err != nil {
				return figure{}, err
			}
		}
		return figure{Value: bars.Median(got.Waits)}, nil
	}
}

// trickleGap is the pause between two tasks. It is long enough for a system to become idle again.
const trickleGap = 25 * time.Millisecond
