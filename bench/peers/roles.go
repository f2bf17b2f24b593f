package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sys/unix"
)

// A job says what a child process does. It is passed in an environment variable.
type job struct {
	Role string // the system and what the process is, such as "tdf worker"
	Port int    // of Redis
	Dir  string

	Tasks    int
	Batch    int  // number of tasks that one call opens
	Callers  int  // number of calls at the same time; 0 is one call
	Slots    int  // number of slots of a worker
	Programs bool // the worker runs programs; otherwise it calls a handler
	Typed    bool // the handler has a typed input, and stores a result
	Timed    bool // the worker reports how long tasks have waited
}

const jobVariable = "TDF_BENCH_JOB"

func (j job) variable() string { return jobVariable + "=" + string(must(json.Marshal(j))) }

func isRole() bool { return os.Getenv(jobVariable) != "" } // this process is a child that has a job

// runRole does the job of this process. It returns when its input ends.
func runRole(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	defer caught(&err)
	var j job
	check(json.Unmarshal([]byte(os.Getenv(jobVariable)), &j))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	verbs, stop := map[string]func(context.Context, job) (map[string]verb, func()){
		"tdf opener": tdfOpener, "tdf worker": tdfWorker, "tdf server": tdfServer,
		"asynq opener": asynqOpener, "asynq worker": asynqWorker,
	}[j.Role](ctx, j)
	check(serve(ctx, in, out, verbs))
	cancel()
	stop()
	return nil
}

// timeOf measures the time that work takes.
func timeOf(work func()) time.Duration {
	began := time.Now()
	work()
	return time.Since(began)
}

// inParallel calls work for the numbers from 0 to n-1, in several goroutines.
func inParallel(callers, n int, work func(i int) error) {
	errs := make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c; i < n && errs[c] == nil; i += callers {
				errs[c] = work(i)
			}
		})
	}
	all.Wait()
	check(errors.Join(errs...))
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

func (c *counter) report(context.Context) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally
}

// monotonic returns the time of a clock that all processes share, in ns. Node's process.hrtime reads the same clock.
func monotonic() int64 {
	var t unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &t))
	return t.Nano()
}

func asynqRedis(j job) asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: fmt.Sprint("127.0.0.1:", j.Port)}
}

func asynqOpener(_ context.Context, j job) (map[string]verb, func()) {
	client := asynq.NewClient(asynqRedis(j))
	keep := map[bool]time.Duration{true: time.Hour}[j.Typed] // a result is kept with its task
	open := func(ctx context.Context) any {
		return timeOf(func() {
			inParallel(max(j.Callers, 1), j.Tasks, func(i int) error {
				task := asynq.NewTask(namespace, []byte(payload(int64(i))))
				_, err := client.EnqueueContext(ctx, task, asynq.Retention(keep))
				return err
			})
		})
	}
	return map[string]verb{"open": open}, func() { client.Close() }
}

func asynqWorker(_ context.Context, j job) (map[string]verb, func()) {
	c := &counter{timed: j.Timed}
	server := asynq.NewServer(asynqRedis(j), asynq.Config{Concurrency: j.Slots, LogLevel: asynq.FatalLevel})
	handler := asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		c.add(string(task.Payload()))
		if !j.Typed {
			return nil
		}
		_, err := task.ResultWriter().Write([]byte("100"))
		return err
	})
	work := func(context.Context) any {
		check(server.Start(handler))
		return nil
	}
	return map[string]verb{"report": c.report, "work": work}, server.Shutdown
}
