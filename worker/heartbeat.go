package worker

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// heartbeatPause returns the time between two heartbeats, or two renewals.
func (w *Worker) heartbeatPause() time.Duration { return w.cfg.Lease / 3 }

// haveNews lets the loops of heartbeats send early heartbeats.
func (w *Worker) haveNews() {
	for _, n := range w.namespaces {
		n.breakers.changed.give()
	}
}

func (w *Worker) info(n *namespace, state string) presence.WorkerInfo {
	pauses := append(w.shortages.remarks(time.Now(), w.slots()), n.breakers.pauses()...)
	if w.slotDirs != nil {
		pauses = append(pauses, w.slotDirs.remarks()...)
	}
	info := presence.WorkerInfo{
		Name: w.name, Host: w.hostname, PID: os.Getpid(), Process: identity(), Version: w.version,
		Lease: tdf.For(w.cfg.Lease), State: state, Slots: w.slots(), Pauses: pauses,
		Offer: w.offer, InProcess: w.inProcess(),
	}
	if w.pool != nil {
		info.Used = w.pool.Used()
	}
	return info
}

// register takes the name, and cleans up after the earlier worker of this name. It must be called before the first
// claim, because servers must know the longest lease of all workers. It returns a [broker.NameTaken] if another worker
// has the name, or takes the name during the call.
func (w *Worker) register(ctx context.Context) error {
	held, err := w.start(ctx)
	if err != nil {
		w.sendLastHeartbeats(ctx, held)
		return err
	}
	w.log.Info("working", "directory", w.cfg.Directory, "slots", w.slots())
	for _, n := range w.namespaces {
		if _, err := n.broker.WorkerHeartbeat(ctx, w.info(n, n.state())); err != nil {
			w.sendLastHeartbeats(ctx, w.namespaces)
			return err
		}
	}
	return nil
}

// start takes the name in all namespaces, and cleans up. It returns the namespaces in which the worker has the name.
func (w *Worker) start(ctx context.Context) (held []*namespace, err error) {
	starting := ctx
	var stops []func() error
	for _, n := range w.namespaces {
		var drained string
		drained, err = n.broker.TakeName(starting, w.info(n, presence.WorkerStarting),
			broker.Takeover{Gone: isGone, Sleep: w.sleep, Log: n.log})
		if err != nil {
			break
		}
		n.drain.obey(drained, n.log)
		var stop func() error
		starting, stop = w.holdName(starting, n)
		stops = append(stops, stop)
	}
	if len(stops) == len(w.namespaces) {
		err = w.cleanUp(starting)
	}
	var lost error
	for i, stop := range stops {
		taken := stop()
		if taken == nil {
			held = append(held, w.namespaces[i])
		}
		lost = cmp.Or(lost, taken)
	}
	return held, cmp.Or(lost, err)
}

// holdName sends three heartbeats per lease while the worker starts, until stop is called. If another worker takes the
// name, the context starting ends, and stop returns a [broker.NameTaken].
func (w *Worker) holdName(ctx context.Context, n *namespace) (starting context.Context, stop func() error) {
	starting, end := context.WithCancelCause(ctx)
	var loop sync.WaitGroup
	var taken broker.NameTaken
	loop.Go(func() {
		for wait(starting, w.after(w.heartbeatPause())) {
			drained, err := n.broker.WorkerHeartbeat(starting, w.info(n, presence.WorkerStarting))
			switch {
			case errors.As(err, &taken):
				n.log.Error("another worker has taken the name: the start is cancelled", "error", err)
				end(taken)
				return
			case err != nil && starting.Err() == nil:
				n.log.Warn("a heartbeat could not be sent", "error", err)
			case err == nil:
				n.drain.obey(drained, n.log)
			}
		}
	})
	return starting, func() error {
		end(nil)
		loop.Wait()
		if taken != nil {
			return taken
		}
		return nil
	}
}

// cleanUp ends the processes and removes the directories that an earlier worker of this name left on this machine. It
// also gives up the claims of that worker. The rounds of these claims are then lost.
func (w *Worker) cleanUp(ctx context.Context) error {
	w.sweep(ctx)
	for _, n := range w.namespaces {
		lost, err := n.broker.GiveUp(ctx)
		if lost > 0 {
			n.log.Warn("tasks of an earlier worker of this name are lost", "tasks", lost)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nameTaken reports whether err says that another worker has taken the name.
func nameTaken(err error) bool { return errors.As(err, new(broker.NameTaken)) }

// sendHeartbeats sends three heartbeats per lease, and another heartbeat when the worker begins to stop. The returned
// function sends the last heartbeat. If that function returns an error, another worker has taken the name, and the
// supervisor has ended all programs.
func (s *supervisor) sendHeartbeats() (stop func() error) {
	over, end := context.WithCancel(context.WithoutCancel(s.stopping))
	var loops sync.WaitGroup
	for _, l := range s.lanes {
		loops.Go(func() { l.sendHeartbeatsUntil(over) })
	}
	return func() (err error) {
		end()
		loops.Wait()
		s.log.Info("stopped")
		var held []*namespace
		for _, l := range s.lanes {
			if taken := l.nameLost.Load(); taken != nil {
				err = cmp.Or[error](err, *taken)
			} else {
				held = append(held, l.namespace)
			}
		}
		s.sendLastHeartbeats(s.stopping, held)
		return err
	}
}

// sendLastHeartbeats frees the name in some namespaces. It returns soon, even if Redis hangs.
func (w *Worker) sendLastHeartbeats(stopping context.Context, held []*namespace) {
	ctx, end := w.outlive(stopping, w.answer, w.answer)
	defer end(nil)
	ctx, cancel := context.WithTimeout(ctx, w.answer)
	defer cancel()
	var calls sync.WaitGroup
	for _, n := range held {
		calls.Go(func() {
			if _, err := n.broker.WorkerHeartbeat(ctx, w.info(n, presence.WorkerGone)); err != nil {
				n.log.Warn("the last heartbeat could not be sent", "error", err)
			}
		})
	}
	calls.Wait()
}

// newsPause is the shortest time between two early heartbeats.
const newsPause = time.Second

func (s *lane) sendHeartbeatsUntil(over context.Context) {
	stopping, next := s.stopping.Done(), s.heartbeatPause()
	for {
		select {
		case <-s.after(next):
		case <-s.breakers.changed:
			s.sleep(over, min(newsPause, next))
		case <-stopping:
			stopping = nil
			if s == s.lanes[0] {
				s.supervisor.log.Info("stopping: nothing more is claimed")
			}
		case <-over.Done():
			return
		}
		next = s.heartbeatPause()
		drained, err := s.broker.WorkerHeartbeat(over, s.infoWithTasks())
		var taken broker.NameTaken
		switch {
		case errors.As(err, &taken):
			s.log.Error("another worker has taken the name: all programs are ended", "error", err)
			s.nameLost.Store(&taken)
			s.endPrograms(&lostError{taken})
			s.endClaims(taken)
			return
		case err != nil && over.Err() == nil:
			s.log.Warn("a heartbeat could not be sent", "error", err)
		case err == nil && s.drain.obey(drained, s.log):
			next = 0 // so that users see the new state at once
		}
	}
}

func (s *lane) infoWithTasks() presence.WorkerInfo {
	state := s.state()
	if s.stopping.Err() != nil {
		state = presence.WorkerDraining
	}
	info := s.info(s.namespace, state)
	s.mu.Lock()
	for e := range s.held {
		if e.slot > 0 && !e.passedOn { // prefetched tasks that wait, and results that do, have no slot
			info.Runs = append(info.Runs, e.task.ID)
		}
	}
	s.mu.Unlock()
	slices.Sort(info.Runs)
	return info
}
