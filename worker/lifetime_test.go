package worker

import (
	"context"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// The default grace is within the 30 s that Slurm (KillWait) and Kubernetes (terminationGracePeriodSeconds) wait
// between SIGTERM and SIGKILL.
func TestTheDefaultGraceFitsSchedulers(t *testing.T) {
	cfg := expect.Result(config.DefaultWorker("N")).Value(t)
	expect.Equal(t, stopBound(cfg), 27*time.Second)
}

func TestTimeLimitsThatAreTooShort(t *testing.T) {
	for want, c := range map[string]struct{ limit, grace time.Duration }{
		"--time-limit: 27 s is too short; expected more than grace + kill_grace + 12 s = 27 s": {
			27 * time.Second, 10 * time.Second,
		},
		"--time-limit: it is set beside grace=inf, so that the worker might not end in time; expected a grace in seconds": {
			time.Hour, config.Forever,
		},
	} {
		cfg := expect.Result(config.DefaultWorker("N")).Value(t)
		cfg.TimeLimit, cfg.Grace = c.limit, c.grace
		_, err := New("w1", cfg)
		expect.MustTrue(t, err != nil, want)
		expect.Equal(t, err.Error(), want)
	}
}

// The idle timeout begins when no round runs any more. Then the worker ends without an error.
func TestIdleTimeout(t *testing.T) {
	w := newWorld(t)
	w.cfg.IdleTimeout = 70 * time.Hour
	w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; echo done\n")
	worker := w.worker()
	wait := w.until(t.Context(), worker)
	w.timers.waitedFor(t, w.cfg.IdleTimeout)
	p := w.pipe()
	id := w.open(p.path)
	p.begun()
	w.timers.fire(t, w.cfg.IdleTimeout) // of the time before the claim
	w.nextHeartbeats(2)
	expect.Equal(t, w.workerState(), presence.WorkerWorking, "while a round runs")
	p.ended()
	p.release()
	expect.Equal(t, w.finished(id).State, tdf.Succeeded)
	w.timers.fire(t, w.cfg.IdleTimeout)
	wait()
	expect.Equal(t, w.workerState(), presence.WorkerGone, "the worker")
	w.logged("no task for the idle timeout")
}

// A scheduler that cancels a job may send SIGTERM to its programs just before the worker gets its own. Such a round is
// released. Without a SIGTERM for the worker, the round counts as any other.
func TestSIGTERMForAllProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		end   string
		stops bool
		want  tdf.State
	}{
		"the worker stops, too":                   {"kill -TERM $$", true, tdf.Open},
		"the worker stops, and a shell says 143":  {"exit 143", true, tdf.Open},
		"the worker stops, and the round is over": {"exit 1", true, tdf.Failed},
		"only the program gets the signal":        {"kill -TERM $$", false, tdf.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; "+c.end+"\n")
			p, worker, timers := w.pipe(), w.worker(), w.timers.hold()
			id := w.open(p.path, func(d *task.Properties) { d.FailOn = tdf.FailOnExit })
			ctx, stop := context.WithCancel(t.Context())
			wait := w.until(ctx, worker)
			p.begun()
			p.ended()
			p.release()
			switch {
			case !c.stops:
				timers.fire(t, signalPause)
				expect.Equal(t, w.finished(id).State, c.want)
			case c.want == tdf.Open:
				timers.waitedFor(t, signalPause)
			default:
				expect.Equal(t, w.finished(id).State, c.want)
			}
			stop()
			wait()
			expect.Equal(t, w.task(id).State, c.want)
		})
	}
}
