package worker

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/presence"
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

// The program ends within the grace. The worker does not claim a second task.
func TestStopLetsTheProgramFinish(t *testing.T) {
	w := newWorld(t)
	w.cfg.Grace = config.Forever
	w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; echo done\n")
	p := w.pipe()
	id, next := w.open(p.path), w.open("")
	ctx, stop := context.WithCancel(t.Context())
	wait := w.until(ctx, w.worker())
	p.begun()
	p.ended()
	stop()
	eventually(t, "the draining", func() bool { return w.workerState() == presence.WorkerDraining })
	p.release()
	wait()
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Succeeded)
	expect.Equal(t, got.LastOutput(), "done\n")
	expect.Equal(t, w.task(next).State, tdf.Open, "the next task")
	expect.Equal(t, w.workerState(), presence.WorkerGone, "the worker")
}

func TestStopReleasesTasks(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		end    func(w *world, worker *Worker, timers *clock)
	}{
		"after the grace": {waiting, func(w *world, _ *Worker, timers *clock) {
			timers.fire(w, w.cfg.Grace)
			timers.fire(w, w.cfg.KillGrace)
		}},
		"during a fetch": {"", func(w *world, _ *Worker, timers *clock) { timers.fire(w, w.cfg.Grace) }},
		"at once": {"#!/bin/sh\ntrap '' TERM\n" + waiting[len("#!/bin/sh\n"):] + "wait\n", func(w *world, worker *Worker, timers *clock) {
			worker.StopNow()
			timers.fire(w, 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Grace = time.Hour
			p, source := w.pipe(), handMade
			if c.script == "" {
				source = w.archive("run.sh", good, "setup.sh", "#!/bin/sh\nexec 3>"+p.path+"; echo begun >&3; sleep 1000")
			} else {
				w.script("p", c.script)
			}
			id := w.open(p.path, from(source))
			worker, timers := w.worker(), w.timers.hold()
			ctx, stop := context.WithCancel(t.Context())
			wait := w.until(ctx, worker)
			p.begun()
			stop()
			c.end(w, worker, timers)
			p.ended()
			wait()
			task := w.task(id)
			expect.Equal(t, task.State, tdf.Open)
			expect.Equal(t, task.Round, 1)
			expect.Equal(t, task.Releases, 1)
			expect.Equal(t, task.Losses, 0)
			expect.Equal(t, task.Rounds.At(0).Output, "")
			w.logged("msg=released")
		})
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

// If a result cannot be delivered, a stopping worker waits for a limited time only. It says once where the output is.
func TestStopWithoutRedis(t *testing.T) {
	for name, c := range map[string]struct {
		blocked bool // the output cannot be kept
		message string
	}{
		"the output is kept":        {false, `msg="kept output that Redis does not hold"`},
		"the output cannot be kept": {true, `msg="output that Redis does not hold could not be kept"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Grace = time.Hour
			w.script("p", "#!/bin/sh\necho output; echo begun >\"$1\"; read line <\"$1\"\n")
			if c.blocked {
				must(t, os.WriteFile(w.path("p/results"), nil, 0o644))
			}
			p := w.pipe()
			proxy := redistest.NewProxy(t, redistest.Shared(t))
			id := w.open(p.path)
			worker, timers := w.workerOn(w.connect(proxy.Addr)), w.timers.hold()
			ctx, stop := context.WithCancel(t.Context())
			wait := w.until(ctx, worker)
			p.begun()
			proxy.Refuse()
			proxy.Cut()
			p.ended()
			p.release()
			stop()
			timers.fire(t, worker.reportBound())
			timers.fire(t, worker.answer) // the bound of the last claim
			timers.fire(t, worker.answer) // the bound of the last heartbeat
			wait()
			expect.Equal(t, w.task(id).State, tdf.Running, "the task")
			w.logged(`level=WARN msg="the result is dropped"`)
			expect.Equal(t, strings.Count(w.log.String(), c.message), 1, "messages about the output", w.log.String())
			if !c.blocked {
				w.logged("file=" + w.path("p/results/w1-1-0.out"))
				fileHas(t, w.path("p/results/w1-1-0.out"), "output\n")
			}
		})
	}
}
