package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
)

// BenchmarkPipelines measures what it costs to open tasks with a pipeline: in the first stage, and in a stage that follows another
// one. The call Open of a manager is the measure for both.
func BenchmarkPipelines(b *testing.B) {
	const tasks = 100_000
	opensAll := func(_ context.Context, s *manager.Stage) error {
		for i := range tasks {
			s.Open(manager.Definition{Program: "bench", Source: "rsync:/srv/bench/run.sh", Input: hundred(i)})
		}
		return nil
	}
	for name, open := range map[string]func(ctx context.Context, c *caller, m *manager.Manager) error{
		"Open": func(ctx context.Context, _ *caller, m *manager.Manager) error {
			all := make([]manager.Definition, tasks)
			for i := range all {
				all[i] = manager.Definition{Program: "bench", Source: "rsync:/srv/bench/run.sh", Input: hundred(i), Group: "p/a"}
			}
			_, err := m.Open(ctx, all...)
			return err
		},
		"Start": func(ctx context.Context, c *caller, m *manager.Manager) error {
			p := m.Pipeline("p")
			p.Start("a", opensAll)
			return runUntilOpened(ctx, c, p, "p/a")
		},
		"After": func(ctx context.Context, c *caller, m *manager.Manager) error {
			p := m.Pipeline("p")
			p.Start("empty", func(context.Context, *manager.Stage) error { return nil })
			p.After("empty", "a", opensAll)
			return runUntilOpened(ctx, c, p, "p/a")
		},
	} {
		b.Run(name, func(b *testing.B) {
			r := emptyRedis(b)
			c := newCaller(b, r)
			m, err := manager.New(manager.Options{
				Redis: config.Redis{Host: "127.0.0.1", Port: r.Port}, Namespace: "bench", Log: slog.New(slog.DiscardHandler), Progress: io.Discard,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			measure(b, r, tasks, func(ctx context.Context, _ int) error {
				if err := r.Flush(ctx); err != nil {
					return err
				}
				return open(ctx, c, m)
			})
		})
	}
}

// runUntilOpened runs a pipeline until all tasks of a stage are open.
func runUntilOpened(ctx context.Context, c *caller, p *manager.Pipeline, stage string) error {
	opened := errors.New("the tasks are open")
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		for ctx.Err() == nil {
			records, _, err := c.store.StageRecords(ctx, []string{stage})
			if err != nil || records[0].Phase == tdf.StageOpened {
				stop(opened)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if err := p.Run(ctx); !errors.Is(err, opened) {
		return err
	}
	return nil
}
