package worker

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A handler may leave a goroutine behind. That goroutine cannot write into the round of another task.
func TestLeftoverGoroutineReachesNoOtherRound(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency = 1
	first, second := w.open("", forHandler("p")), w.open("", forHandler("p"))
	var left *Round
	worker := w.worker(Handle("p", func(_ context.Context, r *Round) error {
		if left == nil {
			left = r
			return nil
		}
		expect.Fails(t, left.SetResult("leftover"), "", "a result was set after the end of the round")
		return nil
	}))
	stop := w.start(worker)
	for _, id := range []int64{first, second} {
		got := w.finished(id)
		expect.Equal(t, got.State, tdf.Succeeded, "task", id)
		expect.Equal(t, got.Current().Result, "", "task", id)
	}
	stop()
}

// A goroutine that a handler left behind cannot write into a round of a later supervisor of this process either.
func TestLeftoverGoroutineReachesNoLaterSession(t *testing.T) {
	w := newWorld(t)
	var left *Round
	handler := Handle("p", func(_ context.Context, r *Round) error {
		if left == nil {
			left = r
		} else if err := left.SetResult("leftover"); err == nil {
			t.Error("the first round could still set a result")
		}
		return nil
	})
	for range 2 {
		id := w.open("", forHandler("p"))
		w.runOnce(w.worker(handler))
		expect.Equal(t, w.finished(id).Current().Result, "", "task", id, "has the result")
	}
}

// ignoring is a handler that ignores its context until the test ends.
func (w *world) ignoring(begun chan<- *Round) Handler {
	end := make(chan struct{})
	var running sync.WaitGroup
	w.Cleanup(func() {
		close(end)
		running.Wait()
	})
	return func(_ context.Context, r *Round) error {
		running.Add(1)
		defer running.Done()
		must(w, r.SetCheckpoint([]byte("state")))
		begun <- r
		<-end
		return nil
	}
}

// A handler may ignore its context. The worker releases its task all the same, and Run returns an error.
func TestStopDoesNotWaitForAHandler(t *testing.T) {
	for name, stop := range map[string]func(w *world, worker *Worker, timers *clock){
		"after the grace": func(w *world, _ *Worker, timers *clock) {
			timers.fire(w, w.cfg.Grace)
			timers.fire(w, w.cfg.KillGrace)
		},
		"at once": func(w *world, worker *Worker, timers *clock) { // the worker does not wait for kill_grace
			worker.StopNow()
			timers.fire(w, 0)
			timers.fire(w, worker.leaveBound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Grace, w.cfg.KillGrace = time.Hour, 2*time.Hour
			id := w.open("", forHandler("p"))
			begun, timers := make(chan *Round, 1), w.timers.hold()
			worker := w.worker(Handle("p", w.ignoring(begun)))
			ctx, end := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- worker.Run(ctx) }()
			r := <-begun
			end()
			stop(w, worker, timers)
			err := <-done
			expect.Fails(t, err, `task 1 of program "p"`, "Run")
			got := w.task(id)
			expect.Equal(t, got.State, tdf.Open)
			expect.Equal(t, got.Releases, 1)
			expect.Equal(t, got.Losses, 0)
			expect.Equal(t, got.Checkpoint, "state")
			expect.Fails(t, r.SetResult(1), "", "the round's directory still exists")
			expect.Result(r.Stdout.Write([]byte("x"))).Fails(t, "", "the round's output is still open")
		})
	}
}

// A handler may end its goroutine, as t.FailNow does. The round fails, and its slot becomes free.
func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency = 1
	id, next := w.open("", forHandler("exits")), w.open("", forHandler("p"))
	worker := w.worker(Handle("exits", func(context.Context, *Round) error {
		runtime.Goexit()
		return nil
	}), Handle("p", nothing))
	stop := w.start(worker)
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Failed)
	expect.Equal(t, got.Current().Exit, "2")
	expect.Contains(t, got.LastError(), "runtime.Goexit")
	expect.Equal(t, w.finished(next).State, tdf.Succeeded, "the next task")
	stop()
}

// A round in this process makes files only if its handler uses them.
func TestHandlerWithoutFiles(t *testing.T) {
	for name, c := range map[string]struct {
		use   func(r *Round) error
		files bool
	}{
		"nothing":      {func(*Round) error { return nil }, false},
		"some output":  {func(r *Round) error { _, err := io.WriteString(r.Stdout, "x"); return err }, false},
		"large output": {func(r *Round) error { _, err := r.Stdout.Write(make([]byte, 1<<20)); return err }, true},
		"a result":     {func(r *Round) error { return r.SetResult(1) }, false},
		"an update":    {func(r *Round) error { r.Update("x"); return nil }, false},
		"its directory": {func(r *Round) error {
			env, err := r.Env()
			if dir := dirOf(r); !slices.Contains(env, "TDF_DIR="+dir) {
				return fmt.Errorf("the environment lacks %s: %q", dir, env)
			}
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.open("", forHandler("p"))
			var left *Round
			w.runOnce(w.worker(Handle("p", func(_ context.Context, r *Round) error {
				left = r
				err := c.use(r)
				_, missing := os.Stat(w.worker().rounds())
				expect.True(t, (missing == nil) == c.files, "files", missing == nil, "want", c.files)
				return err
			})))
			expect.Equal(t, w.finished(id).State, tdf.Succeeded)
			if _, err := os.Stat(w.path(ownDir)); !os.IsNotExist(err) {
				t.Errorf("left behind: %v", err)
			}
			expect.Result(left.Dir()).Fails(t, "", "after its end, the round got the directory")
		})
	}
}
