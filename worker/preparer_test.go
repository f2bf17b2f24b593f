package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
)

// A holdingPreparer is a Preparer that holds the timeout until its context ends.
type holdingPreparer struct {
	goRunner
	held chan<- error
}

func (p holdingPreparer) Prepare(ctx context.Context, r *Round) (Runner, error) {
	p.held <- r.HoldTimeout(ctx, 7*time.Minute)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A Preparer cannot hold the timeout for longer than its limit, even if the task has no timeout.
func TestHoldTimeoutEndsWithItsLimit(t *testing.T) {
	w := newWorld(t)
	id := w.open("")
	held, timers := make(chan error, 1), &clock{}
	worker := w.worker(WithRunner(holdingPreparer{held: held}))
	worker.after = timers.after
	wait := w.background(t.Context(), worker)
	must(t, receive(t, "the preparation", held))
	timers.fire(t, 7*time.Minute)
	wait()
	if got := w.finished(id); got.State != tdf.Failed || !strings.Contains(got.LastError(), "the preparation took longer than 7m0s") {
		t.Errorf("the task is %s: %q", got.State, got.LastError())
	}
}
