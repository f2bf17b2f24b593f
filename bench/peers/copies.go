package main

import (
	"os"
	"path/filepath"

	"github.com/tdf-framework/tdf/bench/internal/child"
	"github.com/tdf-framework/tdf/bench/redisserver"
)

// copiesBar compares the CPU time of a worker that runs a program of many files in the slots' copies with that of a
// worker whose slots share the program's directory. A third side is the first run of each slot, which makes the copy.
// On ext4, this first run takes much longer if many files were deleted some minutes before.
func copiesBar() *bar {
	const copiesSide, sharedSide = "a copy for each slot", "one directory"
	return &bar{
		name: "copies", unit: "µs of CPU a run",
		sides: []side{
			{copiesSide, redisserver.Shipped, steadyRuns(false)},
			{sharedSide, redisserver.Shipped, steadyRuns(true)},
			{"first run of a slot", redisserver.Shipped, measureFirstRuns},
		},
		wants: []want{atMost(1.1, "× that in one directory", ratio(copiesSide, sharedSide))},
	}
}

// steadyRuns returns a measurement of all runs after the first of each slot.
func steadyRuns(share bool) func(*trial) (figure, error) {
	return func(t *trial) (f figure, err error) {
		s := settledSystem{}
		worker, err := t.firstRuns(s, share)
		if err != nil {
			return f, err
		}
		before, err := worker.Used()
		if err != nil {
			return f, err
		}
		if err := t.openAll(s, job{Tasks: t.runs, Batch: 1000}); err != nil {
			return f, err
		}
		if err := t.untilProcessed(s, int64(t.runs+runSlots)); err != nil {
			return f, err
		}
		after, err := worker.Used()
		if err != nil {
			return f, err
		}
		f.Value = perRun(t, after-before)
		_, err = tookRuns(t)
		return f, err
	}
}

func measureFirstRuns(t *trial) (f figure, err error) {
	worker, err := t.firstRuns(settledSystem{}, false)
	if err != nil {
		return f, err
	}
	used, err := worker.Used()
	f.Value = used.Seconds() / runSlots * 1e6
	return f, err
}

// firstRuns starts a worker, and returns when each slot has run the program once.
func (t *trial) firstRuns(s settledSystem, share bool) (*child.Process, error) {
	dir := filepath.Join(t.dir, workerName(1), namespace)
	if err := writeProgram(dir, t.copied); err != nil {
		return nil, err
	}
	if share {
		if err := os.WriteFile(filepath.Join(dir, ".tdfshared"), nil, 0o644); err != nil {
			return nil, err
		}
	}
	if err := t.startServer(); err != nil {
		return nil, err
	}
	if err := t.openAll(s, job{Tasks: runSlots, Batch: 1000}); err != nil {
		return nil, err
	}
	worker, err := s.worker(t, job{Slots: runSlots, Programs: true})
	if err != nil {
		return nil, err
	}
	_, err = t.processBy(s, worker.Call, runSlots, runSlots)
	return worker, err
}
