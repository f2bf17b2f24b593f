package main

import (
	"context"
	"fmt"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/bench/internal/child"
)

// An asynqSystem is asynq with its default queue. It deletes processed tasks, as it does by default.
type asynqSystem struct{}

const asynqQueue = "default"

func asynqKey(name string) string { return "asynq:{" + asynqQueue + "}:" + name }

func (asynqSystem) opener(t *trial, j job) (*child.Process, error) {
	j.System, j.Role = "asynq", "opener"
	return t.startSelf(j)
}

func (asynqSystem) worker(t *trial, j job) (*child.Process, error) {
	j.System, j.Role = "asynq", "worker"
	return t.startSelf(j)
}

func (asynqSystem) waiting(t *trial) (int64, error) {
	return t.rdb.LLen(t.ctx, asynqKey("pending")).Result()
}

func (asynqSystem) processed(t *trial) (int64, error) {
	n, err := t.rdb.Get(t.ctx, asynqKey("processed")).Int64()
	if err == redis.Nil {
		return 0, nil
	}
	return n, err
}

func (t *trial) asynqRedis() asynq.RedisClientOpt { return asynq.RedisClientOpt{Addr: t.redis.Addr()} }

func (asynqSystem) checkOpened(t *trial, n int) error {
	inspector := asynq.NewInspector(t.asynqRedis())
	defer inspector.Close()
	info, err := inspector.GetQueueInfo(asynqQueue)
	if err != nil {
		return err
	}
	if err := expect("pending tasks", info.Pending, n); err != nil {
		return err
	}
	tasks, err := inspector.ListPendingTasks(asynqQueue, asynq.PageSize(20))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if _, err := numberOf(string(task.Payload)); err != nil {
			return err
		}
		if err := expect("state", task.State, asynq.TaskStatePending); err != nil {
			return err
		}
	}
	return expect("tasks of a page", len(tasks), min(n, 20))
}

// checkProcessed checks the counters of the queue, because asynq deletes processed tasks.
func (asynqSystem) checkProcessed(t *trial, n int) error {
	inspector := asynq.NewInspector(t.asynqRedis())
	defer inspector.Close()
	info, err := inspector.GetQueueInfo(asynqQueue)
	if err != nil {
		return err
	}
	got := fmt.Sprintf("%d processed, %d failed, %d stored", info.ProcessedTotal, info.FailedTotal, info.Size)
	return expect("queue", got, fmt.Sprintf("%d processed, 0 failed, 0 stored", n))
}

func asynqOpenerRole(_ context.Context, j job) (map[string]child.Verb, func(), error) {
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: redisConfig(j.Port).Addr()})
	open := func(ctx context.Context) (any, error) {
		return timeOf(func() error {
			return inParallel(j.Callers, j.Tasks, func(i int) error {
				_, err := client.EnqueueContext(ctx, asynq.NewTask(namespace, []byte(payload(int64(i)))))
				return err
			})
		})
	}
	return map[string]child.Verb{"open": open}, func() { client.Close() }, client.Ping()
}

func asynqWorkerRole(_ context.Context, j job) (map[string]child.Verb, func(), error) {
	c := &counter{timed: j.Timed}
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: redisConfig(j.Port).Addr()},
		asynq.Config{Concurrency: j.Slots, LogLevel: asynq.FatalLevel})
	handler := asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		c.add(string(task.Payload()))
		return nil
	})
	started := false
	verbs := map[string]child.Verb{
		"report": c.report,
		"work": func(context.Context) (any, error) {
			started = true
			return nil, server.Start(handler)
		},
	}
	return verbs, func() {
		if started {
			server.Shutdown()
		}
	}, nil
}
