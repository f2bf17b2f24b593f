package worker

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf"
)

// A handler may leave a goroutine behind. That goroutine cannot write into the round of another task.
func TestLeftoverGoroutineReachesNoOtherRound(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency = 1
	first, second := w.open("", ofProgram("p")), w.open("", ofProgram("p"))
	var left *Round
	worker := w.worker(Handle("p", func(_ context.Context, r *Round) error {
		if left == nil {
			left = r
			return nil
		}
		if err := left.SetResult("leftover"); err == nil {
			t.Errorf("the first round's directory is that of the second round: %v", left.Dir == r.Dir)
		}
		return nil
	}))
	ctx, stop := context.WithCancel(t.Context())
	wait := w.until(ctx, worker)
	for _, id := range []int64{first, second} {
		if got := w.finished(id); got.State != tdf.Succeeded || got.Current().Result != "" {
			t.Errorf("task %d is %s with the result %q", id, got.State, got.Current().Result)
		}
	}
	stop()
	wait()
}

// The same holds if the next round runs in another session of this process.
func TestLeftoverGoroutineReachesNoLaterSession(t *testing.T) {
	w := newWorld(t)
	var left *Round
	handler := Handle("p", func(_ context.Context, r *Round) error {
		if left == nil {
			left = r
		} else if err := left.SetResult("leftover"); err == nil {
			t.Error("the first round's directory exists")
		}
		return nil
	})
	for range 2 {
		id := w.open("", ofProgram("p"))
		w.runOnce(w.worker(handler))
		if got := w.finished(id).Current().Result; got != "" {
			t.Errorf("task %d has the result %q", id, got)
		}
	}
}
