package worker

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// registry is what a worker needs of Redis to have its name (docs/operations.md, "Names of workers").
type registry interface {
	TakeName(ctx context.Context, w redisstate.WorkerInfo, before redisstate.PriorOwner) (drained string, since tdf.Time, err error)
	Outages() int64
	WorkerHeartbeat(ctx context.Context, w redisstate.WorkerInfo) (drained string, err error)
	GiveUp(ctx context.Context, name string, before tdf.Time) (int, error)
}

// What a worker says that it does (docs/redis.md).
const (
	stateStarting = "starting"
	stateWorking  = "working"
	stateDraining = "draining"
	stateGone     = "gone"
)

// renewal is how long there is between two heartbeats.
func (w *Worker) renewal() time.Duration { return w.cfg.Lease / 3 }

func (w *Worker) info(state string) redisstate.WorkerInfo {
	return redisstate.WorkerInfo{
		Name: w.name, Host: w.host, PID: os.Getpid(), Process: identity(), Version: w.Version,
		Lease: tdf.For(w.cfg.Lease), State: state, Slots: w.slots(), Pauses: w.avoid.pauses(),
		InProcess: w.inProcess(),
	}
}

// register takes the name, and clears up after the worker that had it before. It comes before the first
// claim: servers must know the longest lease there is. A *[redisstate.NameTakenError] says that another worker has
// the name, or took it meanwhile.
func (w *Worker) register(ctx context.Context) error {
	drained, since, err := w.takeName(ctx)
	if err != nil {
		return err
	}
	w.drain.obey(drained, w.log)
	starting, stop := w.holdName(ctx)
	err = w.clearUp(starting, since)
	if taken := stop(); taken != nil {
		return taken
	}
	if err == nil {
		w.log.Info("working", "directory", w.cfg.Directory, "slots", w.slots())
		_, err = w.store.WorkerHeartbeat(ctx, w.info(w.doing()))
	}
	if err != nil {
		w.goodbye(ctx)
	}
	return err
}

// holdName sends a heartbeat every third of the lease while the worker starts, until stop is called. If
// another worker takes the name, starting ends, and stop returns a *[redisstate.NameTakenError].
func (w *Worker) holdName(ctx context.Context) (starting context.Context, stop func() error) {
	starting, end := context.WithCancelCause(ctx)
	var loop sync.WaitGroup
	loop.Go(func() {
		for wait(starting, time.After(w.renewal())) {
			drained, err := w.store.WorkerHeartbeat(starting, w.info(stateStarting))
			var taken *redisstate.NameTakenError
			switch {
			case errors.As(err, &taken):
				w.log.Error("the name is another worker's now: the start is given up", "error", err)
				end(taken)
				return
			case err != nil && starting.Err() == nil:
				w.log.Warn("a heartbeat could not be sent", "error", err)
			case err == nil:
				w.drain.obey(drained, w.log)
			}
		}
	})
	return starting, func() error {
		end(nil)
		loop.Wait()
		var taken *redisstate.NameTakenError
		if errors.As(context.Cause(starting), &taken) {
			return taken
		}
		return nil
	}
}

// clearUp ends and removes what an earlier worker of this name left behind on this machine, and releases
// its tasks: those that were claimed before this worker took the name.
func (w *Worker) clearUp(ctx context.Context, since tdf.Time) error {
	w.sweep(ctx)
	lost, err := w.store.GiveUp(ctx, w.name, since)
	if lost > 0 {
		w.log.Warn("an earlier worker of this name has left tasks behind: they are lost", "tasks", lost)
	}
	return err
}

// takeName takes it from an earlier worker only if that one is gone. One that is silent may have had no Redis to talk to,
// like everybody: where no server was there to tell, it gets the time of its lease.
// since is when it was taken, by Redis's clock.
func (w *Worker) takeName(ctx context.Context) (drained string, since tdf.Time, err error) {
	var before redisstate.PriorOwner
	var boot string
	for outages := int64(-1); ; {
		drained, since, err = w.store.TakeName(ctx, w.info(stateStarting), before)
		var taken *redisstate.NameTakenError
		switch {
		case !errors.As(err, &taken):
			return drained, since, err
		case isGone(taken.Process) && before.Gone != taken.Boot:
			before.Gone = taken.Boot
			continue
		case !taken.Silent() || boot != "" && taken.Boot != boot:
			return "", 0, err
		}
		if now := w.store.Outages(); boot == "" || now != outages || taken.Seen != before.Seen {
			boot, outages = taken.Boot, now
			before.Seen, before.Since = taken.Seen, taken.Now
			w.log.Warn("the name belongs to a worker that is silent, and may have had no Redis: waiting whether it comes back",
				"host", taken.Host, "pid", taken.PID, "seconds", float64(taken.Lease))
		}
		w.sleep(ctx, min(taken.Lease.Std()/4+time.Millisecond, time.Second))
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
	}
}

// announce sends a heartbeat every third of the lease, and when the worker is told to stop,
// until the function it returns is called, which gives the last one. That returns an error if
// the name was found to be another worker's: then all programs were ended at once.
func (s *session) announce() (signOff func() error) {
	over, end := context.WithCancel(context.WithoutCancel(s.told))
	var loop sync.WaitGroup
	loop.Go(func() { s.announceUntil(over) })
	return func() error {
		end()
		loop.Wait()
		s.log.Info("stopped")
		var taken *redisstate.NameTakenError
		if errors.As(context.Cause(s.told), &taken) {
			return taken
		}
		s.goodbye(s.told)
		return nil
	}
}

// goodbye gives the name back. It takes little time, also where Redis hangs.
func (w *Worker) goodbye(told context.Context) {
	ctx, end := w.outlive(told, w.answer, w.answer)
	defer end(nil)
	ctx, cancel := context.WithTimeout(ctx, w.answer)
	defer cancel()
	if _, err := w.store.WorkerHeartbeat(ctx, w.info(stateGone)); err != nil {
		w.log.Warn("the last heartbeat could not be sent", "error", err)
	}
}

func (s *session) announceUntil(over context.Context) {
	told, next := s.told.Done(), s.Worker.renewal()
	for {
		select {
		case <-time.After(next):
		case <-told:
			told = nil
			s.log.Info("told to stop: nothing more is claimed")
		case <-over.Done():
			return
		}
		next = s.Worker.renewal()
		drained, err := s.store.WorkerHeartbeat(over, s.infoWithTasks())
		var taken *redisstate.NameTakenError
		switch {
		case errors.As(err, &taken):
			s.log.Error("the name is another worker's now: all programs are ended", "error", err)
			s.abandon(taken)
			s.dismiss(taken)
			return
		case err != nil && over.Err() == nil:
			s.log.Warn("a heartbeat could not be sent", "error", err)
		case err == nil && s.drain.obey(drained, s.log):
			next = 0 // whoever looks is to see it
		}
	}
}

func (s *session) infoWithTasks() redisstate.WorkerInfo {
	doing := s.doing()
	if s.told.Err() != nil {
		doing = stateDraining
	}
	info := s.info(doing)
	for _, e := range s.holds() {
		info.Runs = append(info.Runs, e.task.ID)
	}
	slices.Sort(info.Runs)
	return info
}
