package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// loop calls run for each number from 1 to runs, in one goroutine per slot. It returns the cost of all calls.
func loop(runs int, run func(n int64) error) (cost, error) {
	var next atomic.Int64
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	began, before := time.Now(), usedCPU()
	for range slots {
		all.Go(func() {
			for n := next.Add(1); n <= int64(runs); n = next.Add(1) {
				if err := run(n); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return cost{}, *err
	}
	return cost{time.Since(began), usedCPU() - before}, nil
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

// bare only runs the program, by os/exec.
func bare(ctx context.Context, dir string, runs int) (cost, error) {
	return loop(runs, func(int64) error {
		cmd := exec.CommandContext(ctx, "./run.sh", "1")
		cmd.Dir = filepath.Join(dir, "p")
		return cmd.Run()
	})
}

// careful runs the program with the minimum that a worker must do. Each run has its own session, directory and two
// output files. At the end of the run, careful reads the files.
func careful(ctx context.Context, dir string, runs int) (cost, error) {
	results := filepath.Join(dir, "careful")
	if err := os.MkdirAll(results, 0o755); err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(results)
	return loop(runs, func(n int64) error { return carefulRun(ctx, dir, filepath.Join(results, fmt.Sprint(n))) })
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
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(dir, "p"), out, failure
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
