package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/internal/task"
)

// A system is a task queue that is measured.
type system struct {
	name     string
	settings []string // of its Redis
	job      job      // how it opens tasks
	whole    bool     // a server and a manager of TDF run, too, and a task is processed when it is archived
	late     bool     // the worker starts when the first task waits, because it looks for tasks only once a second

	start     func(t *trial, role string, j job) *child
	waiting   func(t *trial) (int64, error) // the number of tasks that no worker has claimed
	processed func(t *trial) (int64, error) // the number of tasks for which the system has nothing left to do
}

const (
	namespace = "bench"
	asynqKey  = "asynq:{default}:"
	bullmqKey = "bull:" + namespace + ":"
)

var (
	tdfTasks = system{
		name: "TDF", settings: redisserver.Shipped, job: job{Batch: 1000}, start: startTDF,
		waiting: inState(task.Open), processed: inState(task.Succeeded),
	}
	tdfDefaults = system{name: "TDF, Redis's defaults", job: tdfTasks.job, start: startTDF, waiting: tdfTasks.waiting}
	tdfWhole    = system{
		name: "TDF", settings: redisserver.Shipped, job: tdfTasks.job, whole: true, start: startTDF,
		waiting: tdfTasks.waiting, processed: inState(task.Archived),
	}
	// asynq deletes processed tasks, as it does by default.
	asynqTasks = system{
		name: "asynq", job: job{Callers: 16}, late: true,
		start:   func(t *trial, role string, j job) *child { return t.startSelf("asynq "+role, j) },
		waiting: func(t *trial) (int64, error) { return t.redis.LLen(t.ctx, asynqKey+"pending").Result() },
		processed: func(t *trial) (int64, error) {
			n, err := t.redis.Get(t.ctx, asynqKey+"processed").Int64()
			if errors.Is(err, redis.Nil) {
				return 0, nil
			}
			return n, err
		},
	}
	// BullMQ keeps processed jobs, as it does by default.
	bullmqTasks = system{
		name: "BullMQ", job: job{Batch: 1000}, start: startBullMQ,
		waiting:   func(t *trial) (int64, error) { return t.redis.LLen(t.ctx, bullmqKey+"wait").Result() },
		processed: func(t *trial) (int64, error) { return t.redis.ZCard(t.ctx, bullmqKey+"completed").Result() },
	}
)

// with returns the system with another way to open tasks.
func (s system) with(j job) system {
	s.job = j
	return s
}

func inState(state task.State) func(t *trial) (int64, error) {
	return func(t *trial) (int64, error) { return t.redis.ZCard(t.ctx, namespace+":"+string(state)).Result() }
}

func startTDF(t *trial, role string, j job) *child { return t.startSelf("tdf "+role, j) }

// opener starts a child that opens n tasks when it gets the verb open.
func (s system) opener(t *trial, n int) *child {
	j := s.job
	j.Tasks = n
	c := s.start(t, "opener", j)
	if s.whole {
		s.start(t, "server", job{})
		check(c.call("archive", nil))
	}
	return c
}

// worker starts a child that processes tasks when it gets the verb work.
func (s system) worker(t *trial, j job) *child {
	j.Slots, j.Typed = slots, s.job.Typed
	return s.start(t, "worker", j)
}

func sidesOf(measure func(*trial, system) figure, systems ...system) (all []side) {
	for _, s := range systems {
		all = append(all, side{s.name, s.settings, func(t *trial) figure { return measure(t, s) }})
	}
	return all
}

// payloadSize is the size in bytes of a task's input.
const payloadSize = 100

// payload returns the input of a task, which begins with the given number.
func payload(n int64) string {
	return (fmt.Sprint(n, " ") + strings.Repeat("x", payloadSize))[:payloadSize]
}

// numberOf returns the number at the beginning of a payload.
func numberOf(payload string) (int64, error) {
	number, rest, _ := strings.Cut(payload, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || len(payload) != payloadSize || strings.Trim(rest, "x") != "" {
		return 0, fmt.Errorf("a task has the payload %q", payload)
	}
	return n, nil
}
