package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/bench/redisserver"
)

const (
	slots     = 50               // tasks that a worker runs at once
	timeLimit = 15 * time.Minute // of one measurement
	pollPause = 5 * time.Millisecond
)

// A trial is one measurement of one side. It has a Redis and processes of its own. Its functions panic with a failure,
// which run returns as an error.
type trial struct {
	size
	ctx      context.Context
	redis    *redisserver.Server
	dir      string // a temporary directory
	children []*child
}

type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns the result of a call that must succeed.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// equal fails the measurement if got and want differ.
func equal[T comparable](what string, got, want T) {
	if got != want {
		check(fmt.Errorf("%s: got %v, want %v", what, got, want))
	}
}

func caught(err *error) {
	p := recover()
	if f, ok := p.(failure); ok {
		*err = f.error
	} else if p != nil {
		panic(p)
	}
}

// run measures a side once.
func (s side) run(ctx context.Context, size size) (f figure, err error) {
	defer caught(&err)
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel() // which kills the children of a measurement that has failed
	t := &trial{size: size, ctx: ctx, redis: must(redisserver.Start(s.settings...))}
	defer t.redis.Stop()
	t.dir = must(os.MkdirTemp("", "tdf-bench-peers"))
	defer os.RemoveAll(t.dir)
	f = s.measure(t)
	t.stop()
	return f, nil
}

// start starts a child process with a job.
func (t *trial) start(j job, env []string, program string, args ...string) *child {
	j.Port, j.Dir = t.redis.Port, t.dir
	cmd := exec.CommandContext(t.ctx, program, args...)
	cmd.Env = append(append(os.Environ(), env...), j.variable())
	c := start(cmd)
	t.children = append(t.children, c)
	return c
}

// startSelf starts a child process that runs this program (runRole).
func (t *trial) startSelf(role string, j job) *child {
	j.Role = role
	return t.start(j, nil, must(os.Executable()))
}

// stop ends all child processes, the last one first, and fails if one of them fails.
func (t *trial) stop() {
	children := t.children
	t.children = nil
	for _, c := range slices.Backward(children) {
		check(c.stop())
	}
}

// sleep waits, unless the measurement takes too long or is interrupted.
func (t *trial) sleep(pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-t.ctx.Done():
		check(context.Cause(t.ctx))
	}
}

// untilProcessed waits until the system has processed n tasks. Far from the end, it polls rarely, because polls use CPU
// time of Redis, and the measurement counts this time. Near the end, it polls more often.
func (t *trial) untilProcessed(s system, n int) {
	began := time.Now()
	for {
		processed := must(s.processed(t))
		if processed >= int64(n) {
			return
		}
		pause := pollPause
		if processed > 0 {
			left := time.Since(began) * time.Duration(int64(n)-processed) / time.Duration(processed)
			pause = min(max(left/4, pollPause), 20*pollPause)
		}
		t.sleep(pause)
	}
}

// costOf measures the work of n tasks: tasks per second, and the usage of Redis.
func (t *trial) costOf(n int, work func() time.Duration) figure {
	before := must(t.redis.Usage(t.ctx))
	took, tasks := work(), float64(n)
	after := must(t.redis.Usage(t.ctx))
	return figure{
		value: tasks / took.Seconds(), cpu: (after.CPU - before.CPU) / tasks * 1e6,
		commands: (after.Commands - before.Commands) / tasks,
	}
}

// together runs work while another call is under way, and waits for both.
func together(call func() error, work func()) {
	done := make(chan error, 1)
	go func() { done <- call() }()
	work()
	check(<-done)
}
