package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker"
)

func redisConfig(port int) config.Redis { return config.Redis{Host: "127.0.0.1", Port: port} }
func discard() *slog.Logger             { return slog.New(slog.DiscardHandler) }

// typed has the payload of a task as its input, and the size of it as its result.
const typed = task.Kind[string, int](namespace)

func definition(number int64) manager.Definition {
	return manager.Definition{Program: namespace, Source: "rsync:/srv/bench/run.sh", Input: payload(number)}
}

// tdfOpener is a manager. It opens tasks, and archives finished tasks if it gets the verb "archive".
func tdfOpener(ctx context.Context, j job) (map[string]verb, func()) {
	m := must(manager.New(manager.Options{
		Redis: redisConfig(j.Port), Namespace: namespace, Log: discard(), Progress: io.Discard,
	}))
	check(m.Connect(ctx))
	var running sync.WaitGroup
	return map[string]verb{
		"open": func(ctx context.Context) any { return timeOf(func() { openTDF(ctx, m, j) }) },
		"trickle": func(ctx context.Context) any {
			for range j.Tasks { // a task's number is the time at which it is opened, in an idle system
				time.Sleep(25 * time.Millisecond)
				must(m.Open(ctx, definition(monotonic())))
			}
			return nil
		},
		"chain": func(ctx context.Context) any { return chain(ctx, m, j.Tasks) },
		"archive": func(ctx context.Context) any {
			running.Go(func() {
				_ = m.Run(ctx, manager.Callbacks{ // until ctx ends
					AllGroups: true,
					Succeeded: func(context.Context, *manager.Finished) error { return nil },
					Stop:      func(context.Context, manager.Summary) bool { return false },
				})
			})
			return nil
		},
	}, func() { running.Wait(); m.Close() }
}

func openTDF(ctx context.Context, m *manager.Manager, j job) {
	open := func(i int) error {
		_, err := m.Open(ctx, definition(int64(i)))
		return err
	}
	if j.Callers > 0 {
		inParallel(j.Callers, j.Tasks, open)
		return
	}
	for i := 0; i < j.Tasks; i += j.Batch {
		batch := make([]manager.Definition, min(j.Batch, j.Tasks-i))
		for k := range batch {
			batch[k] = definition(int64(i + k))
			if j.Typed {
				batch[k].Source, batch[k].Input = "", strconv.Quote(batch[k].Input)
			}
		}
		must(m.Open(ctx, batch...))
	}
}

// chain opens the first task, and runs the manager until all tasks of the chain are archived.
func chain(ctx context.Context, m *manager.Manager, links int) time.Duration {
	began := time.Now()
	must(m.Open(ctx, definition(0)))
	number, ran := int64(0), time.Duration(0)
	check(m.Run(ctx, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, t *manager.Finished) error {
			ran += t.LastRun().RunTime
			number++
			if number < int64(links) {
				t.Open(definition(number))
			}
			return nil
		},
		Stop: func(_ context.Context, s manager.Summary) bool { return s.Counts[task.Archived] >= int64(links) },
	}))
	return time.Since(began) - ran
}

// tdfServer is a server with the default configuration.
func tdfServer(ctx context.Context, j job) (map[string]verb, func()) {
	cfg := must(config.DefaultServer(namespace))
	store := must(redisstate.Connect(ctx, redisConfig(j.Port), namespace, discard()))
	var running sync.WaitGroup
	running.Go(func() { _ = server.New("server", cfg, store, discard()).Run(ctx) })
	return nil, func() { running.Wait(); store.Close() }
}

const workerName = "worker1"

// tdfWorker is a worker with the default configuration, apart from the number of slots. Its tasks do nothing, or run a
// program.
func tdfWorker(_ context.Context, j job) (map[string]verb, func()) {
	c := &counter{timed: j.Timed}
	cfg := must(config.DefaultWorker(namespace))
	cfg.Redis, cfg.Directory, cfg.Concurrency = redisConfig(j.Port), filepath.Join(j.Dir, workerName), j.Slots
	check(os.MkdirAll(cfg.Directory, 0o755))
	how := worker.WithSole()
	switch {
	case j.Typed:
		how = worker.HandleKind(typed, func(_ context.Context, _ *worker.Round, in string) (int, error) {
			c.add(in)
			return len(in), nil
		})
	case !j.Programs:
		how = worker.WithRunner(worker.Handler(func(_ context.Context, r *worker.Round) error {
			c.add(r.Input)
			return nil
		}))
	}
	w := must(worker.New(workerName, cfg, worker.WithLog(discard()), worker.WithArchives(archive.Compressions()...), how))
	var running sync.WaitGroup
	work := func(ctx context.Context) any {
		running.Go(func() { _ = w.Run(ctx) })
		return nil
	}
	return map[string]verb{"report": c.report, "work": work}, running.Wait
}
