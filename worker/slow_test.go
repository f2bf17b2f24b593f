package worker

import (
	"context"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// On a slow link, a large checkpoint takes longer than a lease. The worker still renews the leases of all its tasks,
// while the round runs and after it has ended.
func TestLargeReportsDelayNoRenewal(t *testing.T) {
	for _, name := range []string{"running", "ended"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Lease, w.cfg.Concurrency = 300*time.Millisecond, 2
			proxy := redistest.NewProxy(t, redistest.Shared(t))
			release := make(chan struct{})
			worker := w.workerOn(w.connect(proxy.Addr), Handle("large", func(_ context.Context, r *Round) error {
				proxy.Limit(8 << 10)
				err := r.SetCheckpoint(make([]byte, 1<<20)) // takes 128 s, unless the proxy resumes
				if name == "running" {
					<-release
				}
				return err
			}), Handle("small", func(context.Context, *Round) error {
				<-release
				return nil
			}))
			small, large := w.open("", forHandler("small")), w.open("", forHandler("large"))
			s, end := w.session(worker)
			_, _, err := s.claim(2, false)
			must(t, err)
			for range 5 {
				for _, id := range []int64{small, large} {
					before := w.task(id).LeaseUntil
					eventually(t, "a renewal", func() bool { return w.task(id).LeaseUntil > before })
				}
			}
			expect.Equal(t, len(w.task(large).Checkpoint), 0, "a checkpoint of … bytes arrived over the slow link")
			proxy.Resume()
			close(release)
			end()
			for _, id := range []int64{small, large} {
				if got := w.finished(id); got.State != tdf.Succeeded || got.Losses != 0 || len(got.Checkpoint) != map[int64]int{large: 1 << 20}[id] {
					t.Errorf("task %d is %s, with a checkpoint of %d bytes\n%s", id, got.State, len(got.Checkpoint), got.Log)
				}
			}
		})
	}
}
