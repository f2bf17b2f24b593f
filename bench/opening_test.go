package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
)

// BenchmarkManagerOpen measures a manager that opens tasks, with different numbers of callers and of tasks per call. It also
// reports the CPU time of the manager per task (cpu-ns/task). With -benchmem, it reports the allocations per call.
func BenchmarkManagerOpen(b *testing.B) {
	for _, how := range []struct{ callers, batch int }{{1, 1000}, {1, 1}, {16, 1}} {
		b.Run(fmt.Sprintf("callers=%d/batch=%d", how.callers, how.batch), func(b *testing.B) {
			r := emptyRedis(b)
			m := newManager(b, r.Port)
			calls := max(how.callers, 20000/how.batch)
			before := cpuTime(b)
			b.ReportAllocs()
			measure(b, r, calls*how.batch, func(ctx context.Context, i int) error {
				return inTurns(how.callers, calls, func(call int) error {
					_, err := m.Open(ctx, numbered((i*calls+call)*how.batch, how.batch)...)
					return err
				})
			})
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N*calls*how.batch), "cpu-ns/task")
		})
	}
}

func newManager(t testing.TB, port int) *manager.Manager {
	m, err := manager.New(manager.Options{
		Redis: config.Redis{Host: "127.0.0.1", Port: port}, Namespace: "bench", Log: slog.New(slog.DiscardHandler), Progress: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// numbered returns n definitions with inputs of 100 bytes.
func numbered(first, n int) []manager.Definition {
	all := make([]manager.Definition, n)
	for i := range all {
		all[i] = manager.Definition{Program: "bench", Source: "rsync:/srv/bench/run.sh", Input: hundred(first + i)}
	}
	return all
}

// inTurns makes n calls, by several callers at the same time. It returns the first error of each caller.
func inTurns(callers, n int, call func(i int) error) error {
	errs := make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c; i < n && errs[c] == nil; i += callers {
				errs[c] = call(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
