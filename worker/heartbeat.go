package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// heartbeatPause returns the time between two heartbeats, or two renewals.
func (w *Worker) heartbeatPause() time.Duration { return w.cfg.Lease / 3 }

// haveNews lets the loop of heartbeats send an early heartbeat.
func (w *Worker) haveNews() {
	w.news.give()
}

func (w *Worker) info(state string) presence.WorkerInfo {
	info := presence.WorkerInfo{
		Name: w.name, Host: w.hostname, PID: os.Getpid(), Process: identity(), Version: w.version,
		Lease: task.For(w.cfg.Lease), State: state, Slots: w.slots(), Shortage: w.shortages.remark(w.slots()),
		Offer: w.offer, InProcess: w.inProcess(),
	}
	if w.pool != nil {
		info.Used = w.pool.Used()
	}
	return info
}

// cleanUp ends the processes and removes the directories that an earlier worker of this name left on this machine. It
// also gives up the claims of that worker. The rounds of these claims are then lost.
func (w *Worker) cleanUp(ctx context.Context) error {
	w.sweep(ctx)
	lost, err := w.broker.GiveUp(ctx)
	if lost > 0 {
		w.log.Warn("tasks of an earlier worker of this name are lost", "tasks", lost)
	}
	return err
}

// nameTaken reports whether err says that another worker has taken the name.
func nameTaken(err error) bool { return errors.As(err, new(broker.NameTaken)) }

// sendHeartbeats sends three heartbeats per lease, and another heartbeat when the worker begins to stop. The returned
// function sends the last heartbeat. If that function returns an error, another worker has taken the name, and the
// supervisor has ended all programs.
func (s *supervisor) sendHeartbeats() (stop func() error) {
	over, end := context.WithCancel(context.WithoutCancel(s.claiming))
	var loop sync.WaitGroup
	loop.Go(func() { s.sendHeartbeatsUntil(over) })
	return func() error {
		end()
		loop.Wait()
		s.log.Info("stopped")
		if taken := s.nameLost.Load(); taken != nil {
			return *taken
		}
		s.sendLastHeartbeat(s.claiming)
		return nil
	}
}

// sendLastHeartbeat frees the name. It returns soon, even if Redis hangs.
func (w *Worker) sendLastHeartbeat(stopping context.Context) {
	ctx, end := w.outlive(stopping, context.WithoutCancel(stopping), w.answer, w.answer)
	defer end(nil)
	ctx, cancel := context.WithTimeout(ctx, w.answer)
	defer cancel()
	if _, err := w.broker.WorkerHeartbeat(ctx, w.info(presence.WorkerGone)); err != nil {
		w.log.Warn("the last heartbeat could not be sent", "error", err)
	}
}

// newsPause is the shortest time between two early heartbeats.
const newsPause = time.Second

func (s *supervisor) sendHeartbeatsUntil(over context.Context) {
	stopping, next := s.claiming.Done(), s.heartbeatPause()
	for {
		select {
		case <-s.after(next):
		case <-s.news:
			s.sleep(over, min(newsPause, next))
		case <-stopping:
			stopping = nil
			s.log.Info("stopping: nothing more is claimed")
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

func (s *supervisor) infoWithTasks() presence.WorkerInfo {
	state := presence.WorkerWorking
	if s.drain.on() || s.claiming.Err() != nil {
		state = presence.WorkerDraining
	}
	select {
	case <-s.begun:
	default:
		state = presence.WorkerStarting
	}
	info := s.info(state)
	s.mu.Lock()
	for e := range s.held {
		if e.slot > 0 { // prefetched tasks that wait, and results that do, have no slot
			info.Runs = append(info.Runs, e.task.ID)
		}
	}
	s.mu.Unlock()
	slices.Sort(info.Runs)
	return info
}

// A drain is a user's order to claim nothing more (docs/operations.md, "Draining a worker"). The worker's process
// keeps running, so that a service manager does not restart it.
type drain struct {
	by      atomic.Pointer[string] // who gave the order; nil or "" means that there is no order
	changed signal
}

// obey follows the order in the answer to a heartbeat. by is the name of the user who gave the order, or "" if there is
// no order. obey returns whether the order has changed.
func (d *drain) obey(by string, log *slog.Logger) bool {
	was := d.on()
	d.by.Store(&by)
	switch {
	case !was && by != "":
		log.Info("draining by order: nothing more is claimed", "by", by)
	case was && by == "":
		log.Info("the order to drain is withdrawn: claiming again")
	default:
		return false
	}
	d.changed.give()
	return true
}

func (d *drain) on() bool {
	by := d.by.Load()
	return by != nil && *by != ""
}
