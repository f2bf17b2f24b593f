package worker

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// until runs the worker in the background until ctx ends. The function wait returns when Run has returned.
func (w *world) until(ctx context.Context, worker *Worker) (wait func()) {
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	return func() {
		w.Helper()
		must(w, <-done)
	}
}

// start runs the worker in the background. The function stop stops the worker, and returns when Run has returned.
func (w *world) start(worker *Worker) (stop func()) {
	ctx, end := context.WithCancel(w.Context())
	wait := w.until(ctx, worker)
	return func() {
		w.Helper()
		end()
		wait()
	}
}

// If a worker begins to stop during a claim, it does not start the claimed task.
func TestStopDuringAClaim(t *testing.T) {
	w := newWorld(t)
	w.script("p", good)
	id := w.open("")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w.background(ctx, w.worker())()
	task := w.task(id)
	expect.Equal(t, task.State, tdf.Open)
	expect.Equal(t, task.Releases, 1)
}
