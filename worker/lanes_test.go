package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Several calls with reports and claims are under way at the same time. They never claim more tasks than there are free
// slots, whether rounds succeed or fail.
func TestConcurrentReportsClaimOnlyForFreeSlots(t *testing.T) {
	for name, failing := range map[string]int64{"all succeed": 1 << 40, "some fail": 5} {
		t.Run(name, func(t *testing.T) {
			const slots, tasks = 3 * leastPart, 1000
			w := newWorld(t)
			w.cfg.Concurrency, w.cfg.SleepAfterFailure = slots, 0
			for range tasks {
				w.open("", forHandler("p"))
			}
			var running, most, done atomic.Int64
			worker := w.worker(Handle("p", func(context.Context, *Round) error {
				n := running.Add(1)
				defer running.Add(-1)
				for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
				}
				if done.Add(1)%failing == 0 {
					return errors.New("failed")
				}
				return nil
			}))
			client := w.client()
			stop := w.start(worker)
			eventually(t, "the end of all tasks", func() bool {
				return client.ZCard(t.Context(), w.store.Keys.List(tdf.Executed)).Val() == tasks
			})
			stop()
			if most.Load() > slots || done.Load() != tasks {
				t.Errorf("%d rounds at once with %d slots, %d rounds of %d tasks", most.Load(), slots, done.Load(), tasks)
			}
		})
	}
}

func TestReportsInParts(t *testing.T) {
	for _, c := range []struct{ all, parts, want int }{
		{0, 2, 0}, {1, 2, 1}, {2*leastPart - 1, 2, 1}, {2 * leastPart, 2, 2}, {100, 2, 2}, {100, 1, 1}, {101, 2, 2},
	} {
		total := 0
		parts := inParts(make([]delivery, c.all), c.parts)
		for _, part := range parts {
			total += len(part)
		}
		expect.True(t, len(parts) == c.want && total == c.all, c.all, "reports in", c.parts, "parts: got", len(parts), "parts with", total, "reports")
	}
}
