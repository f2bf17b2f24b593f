package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/manager"
)

// runBar compares a worker that runs a trivial run.sh with other tools that run two programs at a time. The worker
// stores the output of each run in Redis, and a server settles the tasks. The other tools discard the output.
func runBar() *bar {
	const bareSide = "Go os/exec"
	return &bar{
		name: "run", unit: "runs/s",
		sides: []side{
			{tdfSide, redisserver.Shipped, runsOfTDF},
			{bareSide, nil, runsOf(runBare)},
			{parallelSide, nil, runsOf(command("parallel", "--will-cite", "-j", fmt.Sprint(runSlots), "./run.sh"))},
			{"xargs", nil, runsOf(command("xargs", "-P", fmt.Sprint(runSlots), "-n", "1", "./run.sh"))},
			{"Go os/exec, with files of a round", nil, runsOf(runWithFiles)},
		},
		wants: []want{
			atLeast(0.9, "× a loop of Go os/exec", ratio(tdfSide, bareSide)),
			atLeast(8, "× GNU parallel", ratio(tdfSide, parallelSide)),
		},
	}
}

const parallelSide = "GNU parallel"

// runSlots is the number of programs that each tool runs at once.
const runSlots = 2

// The program, and its output.
const (
	trivialProgram = "#!/bin/sh\necho done\n"
	trivialOutput  = "done\n"
)

// writeProgram writes the program with some files that it does not use, 100 in each directory.
func writeProgram(dir string, files int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range files {
		name := filepath.Join(dir, fmt.Sprint("lib", i/100), fmt.Sprint(i))
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("text\n"), 0o644))
		if err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "run.sh"), []byte(trivialProgram), 0o755)
}

// A settledSystem is TDF with a server and without a manager. A task is processed when the server has settled it.
type settledSystem struct{ tdfSystem }

func (settledSystem) processed(t *trial) (int64, error) { return t.count(tdf.Succeeded) }

// runsOfTDF measures a worker. The run time counts from the first claim to the last result, by Redis's clock.
func runsOfTDF(t *trial) (figure, error) {
	s := settledSystem{}
	if err := writeProgram(filepath.Join(t.dir, workerName(1), namespace), t.files); err != nil {
		return figure{}, err
	}
	if err := t.startServer(); err != nil {
		return figure{}, err
	}
	if err := t.openAll(s, job{Tasks: t.runs, Batch: 1000}); err != nil {
		return figure{}, err
	}
	worker, err := s.worker(t, job{Slots: runSlots, Programs: true})
	if err != nil {
		return figure{}, err
	}
	n := int64(t.runs)
	f, err := t.costOf(t.runs, func() (time.Duration, error) { return t.processBy(s, worker.Call, n, n) })
	if err != nil {
		return f, err
	}
	if err := t.stopChildren(); err != nil {
		return f, err
	}
	took, err := tookRuns(t)
	f.Value, f.ToolCPU = float64(t.runs)/took.Seconds(), perRun(t, worker.CPU())
	return f, err
}

func perRun(t *trial, cpu time.Duration) float64 { return cpu.Seconds() / float64(t.runs) * 1e6 }

// tookRuns reads all tasks, and returns the time from the first claim to the last result. It returns an error if a task
// has not succeeded, or if its output is not in Redis.
func tookRuns(t *trial) (time.Duration, error) {
	m, err := newManager(t.redis.Port)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	var first, last time.Time
	for i := range t.runs {
		task, err := m.Get(t.ctx, int64(i)+1)
		if err != nil {
			return 0, err
		}
		r := task.LastRun()
		if err := checkOutput(task, r); err != nil {
			return 0, err
		}
		if began := r.Entered[tdf.Running]; first.IsZero() || began.Before(first) {
			first = began
		}
		if ended := r.Entered[tdf.Executed]; ended.After(last) {
			last = ended
		}
	}
	return last.Sub(first), nil
}

func checkOutput(task *manager.Task, r *manager.Round) error {
	if r == nil {
		return fmt.Errorf("read back: task %d has no round", task.ID)
	}
	for _, err := range []error{
		expect("state", task.State, tdf.Succeeded),
		expect("round", task.Round, 0),
		expect("exit", r.Exit, "0"),
		expect("output", r.Output, trivialOutput),
		expect("error", r.Error, ""),
	} {
		if err != nil {
			return fmt.Errorf("task %d: %w", task.ID, err)
		}
	}
	return nil
}

// A tool runs ./run.sh in a directory, as often as the argument runs says. It returns the time and the CPU time that
// all runs together took.
type tool func(ctx context.Context, dir string, runs int) (took, cpu time.Duration, err error)

// runsOf returns a measurement of a tool.
func runsOf(run tool) func(*trial) (figure, error) {
	return func(t *trial) (figure, error) {
		dir := filepath.Join(t.dir, "program")
		if err := writeProgram(dir, t.files); err != nil {
			return figure{}, err
		}
		took, cpu, err := run(t.ctx, dir, t.runs)
		return figure{Value: float64(t.runs) / took.Seconds(), ToolCPU: perRun(t, cpu)}, err
	}
}
