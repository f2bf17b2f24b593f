package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/task"
)

// stopBound returns the longest time that a worker needs to stop: for the rounds that still run, for their reports, and
// for the last heartbeat. Schedulers must wait so long between SIGTERM and SIGKILL (docs/clusters.md).
func stopBound(cfg config.Worker) time.Duration {
	w := Worker{cfg: cfg}
	return w.afterGraces(reportBound + answerBound)
}

// checkTimeLimit returns an error if a worker with this time limit would stop as soon as it starts.
func checkTimeLimit(cfg config.Worker) error {
	if cfg.TimeLimit == 0 || cfg.TimeLimit > stopBound(cfg) {
		return nil
	}
	problem := fmt.Sprintf("%g s is too short; expected more than grace + kill_grace + 12 s = %g s",
		cfg.TimeLimit.Seconds(), stopBound(cfg).Seconds())
	if cfg.Grace == config.Forever {
		problem = "it is set beside grace=inf, so that the worker might not end in time; expected a grace in seconds"
	}
	return &config.Error{Source: "--time-limit", Problem: problem}
}

// withTimeLimit returns a context that ends with ctx, and early enough to stop within the configured time limit. The
// caller must call end.
func (w *Worker) withTimeLimit(ctx context.Context) (limited context.Context, end context.CancelFunc) {
	limited, end = context.WithCancel(ctx)
	if w.cfg.TimeLimit == 0 {
		return limited, end
	}
	near := w.after(w.cfg.TimeLimit - stopBound(w.cfg))
	w.programsEnd = time.Now().Add(TimeForPrograms(w.cfg))
	go func() {
		if wait(limited, near) {
			w.options.log.Info("the time limit is near: nothing more is claimed", "limit", w.cfg.TimeLimit)
			end()
		}
	}()
	return limited, end
}

// TimeForPrograms returns how long a program may run if a new worker starts it at once. It is 0 if cfg has no time
// limit.
func TimeForPrograms(cfg config.Worker) time.Duration {
	if cfg.TimeLimit == 0 {
		return 0
	}
	return max(cfg.TimeLimit-stopBound(cfg)+cfg.Grace, time.Millisecond)
}

// timeLeft returns how long the worker's programs may still run, or 0 if the worker has no time limit.
func (w *Worker) timeLeft() task.Seconds {
	if w.programsEnd.IsZero() {
		return 0
	}
	return task.For(max(time.Until(w.programsEnd), time.Millisecond))
}

// signalPause is how long the worker waits for its own SIGTERM after a program was ended by one.
const signalPause = time.Second

// endedWithWorker reports whether SIGTERM ended a program because the worker stops. When Slurm cancels or preempts a
// job, it sends SIGTERM to all processes of the job at once. So the program may end before this process gets the
// signal. 143 is the exit status of a shell whose command SIGTERM has ended.
func (s *supervisor) endedWithWorker(exit string) bool {
	if s.inProcess() || exit != "signal: terminated" && exit != "143" {
		return false
	}
	select {
	case <-s.claiming.Done():
		return true
	case <-s.after(signalPause):
		return false
	}
}

// An occupancy counts the executions of a process's workers, from the claim to the accepted report, and the workers
// that start.
type occupancy struct {
	held    atomic.Int64
	changed signal // the process has become idle, or busy
}

func (o *occupancy) add(n int64) {
	is := o.held.Add(n)
	if is == 0 || is == n {
		o.changed.give()
	}
}

func (o *occupancy) idle() bool { return o.held.Load() == 0 }

// endWhenIdle calls end when no worker of the process has had a task for the configured time. If a claim is under way
// at this moment, its tasks are released. endWhenIdle returns when ctx ends.
func (w *Worker) endWhenIdle(ctx context.Context, end func()) {
	if w.cfg.IdleTimeout == 0 {
		return
	}
	for ctx.Err() == nil {
		var over <-chan time.Time
		if w.occupancy.idle() {
			over = w.after(w.cfg.IdleTimeout)
		}
		select {
		case <-ctx.Done():
		case <-w.occupancy.changed:
		case <-over:
			if !w.occupancy.idle() {
				continue
			}
			w.options.log.Info("no task for the idle timeout: the worker ends", "timeout", w.cfg.IdleTimeout)
			end()
			return
		}
	}
}
