package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/bench/internal/child"
	"github.com/tdf-framework/tdf/bench/redisserver"
)

// slots is the number of tasks that a worker runs at once.
const slots = 50

// timeLimit bounds one measurement.
const timeLimit = 15 * time.Minute

// A trial is one measurement of one side. It has a Redis of its own.
type trial struct {
	size
	ctx   context.Context
	redis *redisserver.Server
	rdb   *redis.Client
	dir   string // a temporary directory

	children []*child.Process
}

func measureSide(ctx context.Context, s side, size size) (f figure, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	server, err := redisserver.Start(s.settings...)
	if err != nil {
		return f, err
	}
	defer server.Stop()
	dir, err := os.MkdirTemp("", "tdf-bench-peers")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	t := &trial{size: size, ctx: ctx, redis: server, dir: dir}
	t.rdb = redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	defer t.rdb.Close()
	defer func() { err = errors.Join(err, t.stopChildren()) }()
	return s.measure(t)
}

// A job says what a child process does. It is passed in an environment variable.
type job struct {
	System string
	Role   string
	Port   int
	Dir    string

	Tasks    int
	Batch    int  // number of tasks that one call opens
	Callers  int  // number of calls at the same time
	Slots    int  // number of slots of a worker
	Workers  int  // number of workers in the process
	Programs bool // the worker runs programs; otherwise it calls a handler
	Timed    bool // the worker reports how long tasks have waited
}

const jobVariable = "TDF_BENCH_JOB"

// start starts the program with the given name as a child process, and gives it a job.
func (t *trial) start(j job, env []string, program string, args ...string) (*child.Process, error) {
	j.Port, j.Dir = t.redis.Port, t.dir
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.ctx, program, args...)
	cmd.Env = append(append(os.Environ(), env...), jobVariable+"="+string(text))
	p, err := child.Start(j.System+" "+j.Role, cmd)
	if err != nil {
		return nil, err
	}
	t.children = append(t.children, p)
	return p, nil
}

// startSelf starts a child process that runs this program (runRole).
func (t *trial) startSelf(j job) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return t.start(j, nil, self)
}

// stopChildren ends all child processes. The order is the reverse of the order in which they were started.
func (t *trial) stopChildren() error {
	var errs []error
	for _, p := range slices.Backward(t.children) {
		errs = append(errs, p.Stop())
	}
	t.children = nil
	return errors.Join(errs...)
}

// openAll opens the tasks of a job in a process of its own.
func (t *trial) openAll(s system, j job) error {
	opener, err := s.opener(t, j)
	if err != nil {
		return err
	}
	return opener.Call("open", nil)
}

// idleWorker starts a worker that waits for tasks.
func (t *trial) idleWorker(s system, j job) (*child.Process, error) {
	worker, err := s.worker(t, j)
	if err != nil {
		return nil, err
	}
	return worker, worker.Call("work", nil)
}

// checkWorker checks that the worker got each task once. Then it ends all children. Finally, it checks a sample of the
// tasks.
func (t *trial) checkWorker(s system, worker *child.Process) error {
	var got tally
	if err := worker.Call("report", &got); err != nil {
		return err
	}
	n := int64(t.tasks)
	for _, err := range []error{
		expect("error in a payload", got.Wrong, ""),
		expect("tasks that the worker got", got.Count, n),
		expect("sum of the tasks' numbers", got.Sum, n*(n-1)/2),
		t.stopChildren(),
	} {
		if err != nil {
			return err
		}
	}
	return s.checkProcessed(t, t.tasks)
}

// pollPause is the shortest pause between two polls. It is short compared with a measurement.
const pollPause = 5 * time.Millisecond

// poll waits until a number in Redis fulfils a condition.
func (t *trial) poll(read func(t *trial) (int64, error), fulfilled func(int64) bool) error {
	for {
		n, err := read(t)
		if err != nil || fulfilled(n) {
			return err
		}
		if err := t.sleep(pollPause); err != nil {
			return err
		}
	}
}

// untilProcessed waits until the system has processed n tasks. Far from the end, it polls rarely, because polls use CPU
// time of Redis, and the measurement counts this time. Near the end, it polls more often.
func (t *trial) untilProcessed(s system, n int64) error {
	began := time.Now()
	for {
		processed, err := s.processed(t)
		if err != nil || processed >= n {
			return err
		}
		pause := pollPause
		if processed > 0 {
			left := time.Since(began) * time.Duration(n-processed) / time.Duration(processed)
			pause = min(max(left/4, pollPause), 20*pollPause)
		}
		if err := t.sleep(pause); err != nil {
			return err
		}
	}
}

func (t *trial) sleep(pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// costOf measures the work of n tasks: tasks per second, and the usage of Redis.
func (t *trial) costOf(n int, work func() (time.Duration, error)) (figure, error) {
	before, err := t.redis.Usage(t.ctx)
	if err != nil {
		return figure{}, err
	}
	took, err := work()
	if err != nil {
		return figure{}, err
	}
	after, err := t.redis.Usage(t.ctx)
	if err != nil {
		return figure{}, err
	}
	used, tasks := after.Minus(before), float64(n)
	return figure{
		Value: tasks / took.Seconds(), CPU: used.CPU / tasks * 1e6, Commands: used.Commands / tasks,
		Scripts: used.Scripts / tasks * 1e6,
	}, nil
}
