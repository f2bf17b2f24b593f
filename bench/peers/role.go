package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/bench/internal/child"
)

// isRole reports whether this process is a child that has a job.
func isRole() bool { return os.Getenv(jobVariable) != "" }

// runRole does the job of this process. It returns when its input ends.
func runRole(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(jobVariable)), &j); err != nil {
		return err
	}
	start := map[string]func(context.Context, job) (map[string]child.Verb, func(), error){
		"tdf opener":   tdfOpenerRole,
		"tdf worker":   tdfWorkerRole,
		"tdf server":   tdfServerRole,
		"asynq opener": asynqOpenerRole,
		"asynq worker": asynqWorkerRole,
	}[j.System+" "+j.Role]
	if start == nil {
		return fmt.Errorf("unknown role %q of %q", j.Role, j.System)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	verbs, stop, err := start(ctx, j)
	if err != nil {
		return err
	}
	err = child.Serve(ctx, in, out, verbs)
	cancel()
	stop()
	return err
}

// opened is the reply to the verb "open".
type opened struct{ Seconds float64 }

// timeOf measures the time that work takes.
func timeOf(work func() error) (any, error) {
	began := time.Now()
	err := work()
	return opened{time.Since(began).Seconds()}, err
}

// inParallel calls work for the numbers from 0 to n-1, in several goroutines.
func inParallel(callers, n int, work func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && failed.Load() == nil; i = next.Add(1) - 1 {
				if err := work(int(i)); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// A tally contains the numbers that a worker reports about its tasks. It is the reply to the verb "report".
type tally struct {
	Count int64     // the number of tasks
	Sum   int64     // the sum of the numbers in the payloads
	Waits []float64 // for each task, the ms from the opener's call to the start of the handler
	Wrong string    // an error in a payload
}

// A counter counts the tasks of a worker.
type counter struct {
	timed bool
	mu    sync.Mutex
	tally tally
}

func (c *counter) add(payload string) {
	now := monotonic()
	n, err := numberOf(payload)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Count++
	c.tally.Sum += n
	if err != nil {
		c.tally.Wrong = err.Error()
	}
	if c.timed {
		c.tally.Waits = append(c.tally.Waits, float64(now-n)/1e6)
	}
}

func (c *counter) report(context.Context) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally, nil
}

// monotonic returns the time of a clock that all processes share, in ns. Node's process.hrtime reads the same clock.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
