package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/internal/task"
)

// programSlots is the number of programs that each tool runs at once.
const programSlots = 2

// runSides compares a worker that runs a trivial run.sh with other tools. The worker stores the output of each run in
// Redis, and a server settles the tasks. One loop keeps the output of each run in files, as the worker can.
func runSides() []side {
	loops := []side{{"Go os/exec", nil, runsOf(loop(false))}, {"Go os/exec, files", nil, runsOf(loop(true))}}
	return append(append([]side{{"TDF", redisserver.Shipped, runsOfTDF}}, loops...), tools("./run.sh")...)
}

// commandSides compares tdf run with other tools that run a command for each line of stdin. tdf run starts a TDF with
// a Redis for the call, and the time includes this.
func commandSides() []side { return append([]side{{"TDF", nil, runsOf(runWithTDF)}}, tools("true")...) }

func tools(program string) []side {
	jobs := fmt.Sprint(programSlots)
	return []side{
		{"GNU parallel", nil, runsOf(command("parallel", "--will-cite", "-j", jobs, program))},
		{"xargs", nil, runsOf(command("xargs", "-P", jobs, "-n", "1", program))},
	}
}

func writeProgram(dir string) {
	check(os.MkdirAll(dir, 0o755))
	check(os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\necho done\n"), 0o755))
}

// runsOfTDF measures a worker, from the first claim until all tasks have succeeded.
func runsOfTDF(t *trial) figure {
	s := tdfTasks
	s.processed = inState(task.Succeeded)
	writeProgram(filepath.Join(t.dir, workerName, namespace))
	s.start(t, "server", job{})
	check(s.opener(t, t.runs).call("open", nil))
	worker := s.start(t, "worker", job{Slots: programSlots, Programs: true})
	f := t.costOf(t.runs, func() time.Duration { return t.processBy(s, worker, t.runs) })
	t.stop()
	f.tool = cpu(worker.cmd).Seconds() / float64(t.runs) * 1e6
	return f
}

// A tool runs ./run.sh in a directory, as often as the argument runs says. It returns the time and the CPU time that
// all runs together took.
type tool func(ctx context.Context, dir string, runs int) (took, used time.Duration)

// runsOf returns a measurement of a tool.
func runsOf(run tool) func(*trial) figure {
	return func(t *trial) figure {
		dir := filepath.Join(t.dir, "program")
		writeProgram(dir)
		took, used := run(t.ctx, dir, t.runs)
		return figure{value: float64(t.runs) / took.Seconds(), tool: used.Seconds() / float64(t.runs) * 1e6}
	}
}

// command returns a tool that gets one line of stdin for each run.
func command(name string, args ...string) tool {
	return func(ctx context.Context, dir string, runs int) (took, used time.Duration) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(strings.Repeat("1\n", runs)), os.Stderr
		return timeOf(func() { check(cmd.Run()) }), cpu(cmd)
	}
}

// loop returns a tool that only runs the program, by os/exec. With files, each run has a directory with its output.
func loop(files bool) tool {
	return func(ctx context.Context, dir string, runs int) (took, used time.Duration) {
		before := usedCPU()
		took = timeOf(func() {
			inParallel(programSlots, runs, func(i int) error {
				cmd := exec.CommandContext(ctx, "./run.sh", "1")
				if cmd.Dir = dir; !files {
					return cmd.Run()
				}
				at := filepath.Join(dir, fmt.Sprint(i))
				check(os.Mkdir(at, 0o755))
				stdout, stderr := must(os.Create(at+"/stdout")), must(os.Create(at+"/stderr"))
				cmd.Stdout, cmd.Stderr = stdout, stderr
				return errors.Join(cmd.Run(), stdout.Close(), stderr.Close())
			})
		})
		return took, usedCPU() - before
	}
}

// usedCPU returns the CPU time that this process and its ended children have used.
func usedCPU() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		check(syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// runWithTDF builds tdf, and runs commands with it. Its configuration directory is empty, so that it uses no running
// TDF.
func runWithTDF(ctx context.Context, dir string, runs int) (took, used time.Duration) {
	root := must(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tdf-framework/tdf").Output())
	binary := filepath.Join(dir, "tdf")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/tdf")
	build.Dir, build.Stderr = strings.TrimSpace(string(root)), os.Stderr
	check(build.Run())
	run := command("env", "XDG_CONFIG_HOME="+dir, binary, "run", "--lines", "-j", fmt.Sprint(programSlots), "--", "true")
	return run(ctx, dir, runs)
}
