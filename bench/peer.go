package main

import (
	"context"
	"io"
	"sync"

	"github.com/hibiken/asynq"

	"github.com/tdf-framework/tdf/bench/redisserver"
)

// peer measures asynq with the given number of tasks. It enqueues tasks one by one, and asynq handles 10 tasks at once.
func peer(ctx context.Context, r *redisserver.Server, w io.Writer, tasks int) error {
	at := asynq.RedisClientOpt{Addr: r.Addr()}
	client := asynq.NewClient(at)
	defer client.Close()
	m := &meter{r: r, w: w, tasks: tasks}
	err := m.measure(ctx, "asynq: enqueue", "1", func() error {
		for range tasks {
			if _, err := client.EnqueueContext(ctx, asynq.NewTask("bench", []byte("a hundred bytes or so"))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Add(tasks)
	server := asynq.NewServer(at, asynq.Config{Concurrency: 10, LogLevel: asynq.FatalLevel})
	err = m.measure(ctx, "asynq: process", "10 at once", func() error {
		err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			all.Done()
			return nil
		}))
		all.Wait()
		return err
	})
	server.Shutdown()
	m.print("asynq: all calls", "", m.total, m.spent)
	return err
}
