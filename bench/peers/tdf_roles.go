package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/bench/internal/child"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/server"
	"github.com/tdf-framework/tdf/worker"
)

// tdfOpenerRole is a manager. It opens tasks, and archives finished tasks if it gets the verb "archive".
func tdfOpenerRole(ctx context.Context, j job) (map[string]child.Verb, func(), error) {
	m, err := connectedManager(ctx, j.Port)
	if err != nil {
		return nil, nil, err
	}
	var running sync.WaitGroup
	verbs := map[string]child.Verb{
		"open":    func(ctx context.Context) (any, error) { return timeOf(func() error { return openTDF(ctx, m, j) }) },
		"trickle": func(ctx context.Context) (any, error) { return nil, trickle(ctx, j.Tasks, openOne(ctx, m)) },
		"chain":   func(ctx context.Context) (any, error) { return chain(ctx, m, j.Tasks) },
		"archive": func(ctx context.Context) (any, error) {
			running.Go(func() { archiveAll(ctx, m) })
			return nil, nil
		},
	}
	return verbs, func() { running.Wait(); m.Close() }, nil
}

func openTDF(ctx context.Context, m *manager.Manager, j job) error {
	if j.Callers > 0 {
		return inParallel(j.Callers, j.Tasks, func(i int) error { return openOne(ctx, m)(int64(i)) })
	}
	batch := make([]manager.Definition, 0, j.Batch)
	for i := range j.Tasks {
		batch = append(batch, definition(int64(i)))
		if len(batch) < j.Batch && i+1 < j.Tasks {
			continue
		}
		if _, err := m.Open(ctx, batch...); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return nil
}

func openOne(ctx context.Context, m *manager.Manager) func(number int64) error {
	return func(number int64) error {
		_, err := m.Open(ctx, definition(number))
		return err
	}
}

// archiveAll archives finished tasks until ctx ends.
func archiveAll(ctx context.Context, m *manager.Manager) {
	err := m.Run(ctx, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(context.Context, *manager.Finished) error { return nil },
		Stop:      func(context.Context, manager.Summary) bool { return false },
	})
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "bench-peers: manager:", err)
	}
}

// tdfServerRole is a server with the default configuration.
func tdfServerRole(ctx context.Context, j job) (map[string]child.Verb, func(), error) {
	cfg, err := config.DefaultServer(namespace)
	if err != nil {
		return nil, nil, err
	}
	store, err := redisstate.Connect(ctx, redisConfig(j.Port), namespace, discard())
	if err != nil {
		return nil, nil, err
	}
	var running sync.WaitGroup
	running.Go(func() { _ = server.New("server", cfg, store, discard()).Run(ctx) })
	return nil, func() { running.Wait(); store.Close() }, nil
}

// tdfWorkerRole is one or more workers with the default configuration, apart from the number of slots. Their tasks do
// nothing, or run a program (runBar).
func tdfWorkerRole(ctx context.Context, j job) (map[string]child.Verb, func(), error) {
	c := &counter{timed: j.Timed}
	var workers []*worker.Worker
	for i := range j.Workers {
		w, err := newWorker(j, i+1, c)
		if err != nil {
			return nil, nil, err
		}
		workers = append(workers, w)
	}
	var running sync.WaitGroup
	verbs := map[string]child.Verb{
		"report": c.report,
		"work": func(ctx context.Context) (any, error) {
			for i, w := range workers {
				running.Go(func() {
					if err := w.Run(ctx); err != nil {
						fmt.Fprintf(os.Stderr, "bench-peers: %s: %v\n", workerName(i+1), err)
					}
				})
			}
			return nil, waitForWorkers(ctx, j)
		},
	}
	return verbs, running.Wait, nil
}

func workerName(n int) string { return fmt.Sprintf("worker%d", n) }

func newWorker(j job, n int, c *counter) (*worker.Worker, error) {
	cfg, err := config.DefaultWorker(namespace)
	if err != nil {
		return nil, err
	}
	cfg.Redis, cfg.Directory, cfg.Concurrency = redisConfig(j.Port), filepath.Join(j.Dir, workerName(n)), j.Slots
	if err := os.MkdirAll(cfg.Directory, 0o755); err != nil {
		return nil, err
	}
	if j.Programs {
		return worker.New(workerName(n), cfg, worker.WithLog(discard()), worker.WithSole())
	}
	return worker.New(workerName(n), cfg, worker.WithLog(discard()),
		worker.WithRunner(worker.Handler(func(_ context.Context, r *worker.Round) error {
			c.add(r.Input)
			return nil
		})))
}

// waitForWorkers waits until all workers have reported the state working in a heartbeat.
func waitForWorkers(ctx context.Context, j job) error {
	rdb := redis.NewClient(&redis.Options{Addr: redisConfig(j.Port).Addr(), Protocol: 2})
	defer rdb.Close()
	for n := range j.Workers {
		for {
			state, err := rdb.HGet(ctx, namespace+":worker:"+workerName(n+1), "state").Result()
			if err != nil && err != redis.Nil {
				return err
			}
			if state == presence.WorkerWorking {
				break
			}
			time.Sleep(pollPause)
		}
	}
	return nil
}

// trickle opens tasks one by one. Before each task, it waits for trickleGap, so that the system becomes idle. As the
// number of a task, it passes the time at which it opens the task.
func trickle(ctx context.Context, n int, open func(number int64) error) error {
	for range n {
		select {
		case <-time.After(trickleGap):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := open(monotonic()); err != nil {
			return err
		}
	}
	return nil
}
