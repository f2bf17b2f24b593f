package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/bench/internal/child"
)

// command returns a tool that gets one line of stdin for each run.
func command(name string, args ...string) tool {
	return func(ctx context.Context, dir string, runs int) (took, cpu time.Duration, err error) {
		if _, err := exec.LookPath(name); err != nil {
			return 0, 0, fmt.Errorf("%w; run scripts/setup %s", err, name)
		}
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(strings.Repeat("1\n", runs)), os.Stderr
		began := time.Now()
		err = cmd.Run()
		return time.Since(began), child.CPUOf(cmd), err
	}
}

// runBare only runs the program, by os/exec.
func runBare(ctx context.Context, dir string, runs int) (took, cpu time.Duration, err error) {
	return loop(runs, func(int) error {
		cmd := exec.CommandContext(ctx, "./run.sh", "1")
		cmd.Dir = dir
		return cmd.Run()
	})
}

// runWithFiles runs the program with the minimum that a worker must do. Each run has its own session, directory and two
// output files. At the end of the run, runWithFiles reads the files.
func runWithFiles(ctx context.Context, dir string, runs int) (took, cpu time.Duration, err error) {
	results := filepath.Join(dir, "careful")
	if err := os.MkdirAll(results, 0o755); err != nil {
		return 0, 0, err
	}
	return loop(runs, func(i int) error { return carefulRun(ctx, dir, filepath.Join(results, fmt.Sprint(i))) })
}

func carefulRun(ctx context.Context, dir, name string) error {
	scratch := name + ".dir"
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	out, err := os.Create(name + ".out")
	if err != nil {
		return err
	}
	defer out.Close()
	failure, err := os.Create(name + ".err")
	if err != nil {
		return err
	}
	defer failure.Close()
	cmd := exec.CommandContext(ctx, "./run.sh", "1")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, failure
	cmd.Env = append(os.Environ(), "TDF_DIR="+scratch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		return err
	}
	for _, f := range []*os.File{out, failure} {
		if _, err := os.ReadFile(f.Name()); err != nil {
			return err
		}
	}
	return nil
}

// loop calls run once for each run, in one goroutine per slot. It returns the time and the CPU time of this process and
// its children.
func loop(runs int, run func(i int) error) (took, cpu time.Duration, err error) {
	began, before := time.Now(), usedCPU()
	err = inParallel(runSlots, runs, run)
	return time.Since(began), usedCPU() - before, err
}

// usedCPU returns the CPU time that this process and its ended children have used.
func usedCPU() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
