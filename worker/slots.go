package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
)

// errNoSlot ends an execution for which no slot became free: Redis has refused the report of the slot's last round.
var errNoSlot = errors.New("its worker has no free slot")

// start starts the executions of claimed tasks, each in a free slot, or puts them into the stock.
func (s *supervisor) start(a call) {
	clock := &reading{a.tasks.Now, a.received}
	for _, claim := range a.tasks.Claims {
		e := s.newExecution(claim, clock, &a.leased)
		s.occupancy.add(1)
		e.log.Debug("claimed")
		e.ctx, e.end = context.WithCancelCause(s.running)
		e.takeShare(a.lent)
		s.work.Add(1) // until the execution is reported
		prefetched := e.isPrefetched()
		s.mu.Lock()
		s.held[e] = true
		if !prefetched {
			s.begin(e, s.takeSlot())
		}
		s.mu.Unlock()
		if prefetched {
			s.tasks <- e
		} else {
			go s.runSlot(e)
		}
	}
	s.endLoan(a.lent)
	if len(a.tasks.Claims) > 0 {
		s.claimed.give()
	}
}

func (e *execution) isPrefetched() bool { return e.task.Current().Prefetched }

// runSlot runs an execution, and then prefetched tasks in the same slot.
func (s *supervisor) runSlot(e *execution) {
	for e != nil {
		e.cause = e.refusal()
		if e.cause == nil {
			e.run(e.ctx)
		}
		e.end(nil)
		e.freeShare()
		next := s.next(e)
		s.ended <- e
		e = next
	}
}

// refusal returns why an execution must not start, or nil.
func (e *execution) refusal() error {
	switch s := e.s; {
	case e.isPrefetched() && (s.mayNotPassOn() || e.isOverdue()):
		return errGivenBack
	case s.claiming.Err() != nil:
		return errStopping
	case e.noShare, e.slot > s.first+s.slots():
		return errNoSlot
	}
	return context.Cause(e.ctx)
}

// mayNotPassOn reports whether the worker starts no prefetched tasks any more. After a round that could not be started,
// it starts none, because they may be of the same program.
func (s *supervisor) mayNotPassOn() bool {
	return s.claiming.Err() != nil || s.drain.on() || s.unstarted.mayNotStart()
}

// isOverdue reports whether a prefetched task has expired before its start. Then the server expires it.
func (e *execution) isOverdue() bool {
	c := e.clock.Load()
	return c.redis.Add(task.For(time.Since(c.local))) >= e.task.OpenUntil()
}

// next gives the slot of an execution that has ended to a prefetched task. It returns nil if there is none, or if the
// slot must first wait for the report of the round, since a failure may pause the slot.
func (s *supervisor) next(e *execution) *execution {
	succeeded := e.cause == nil && e.reason == "" && !e.result.HasFailed(e.task.FailOn)
	s.mu.Lock()
	s.stock.ended(e.slot, e.cause == nil)
	s.mu.Unlock()
	if !succeeded || e.dir != nil || s.mayNotPassOn() {
		return nil
	}
	return s.passOn(e)
}

// passOn gives the slot of an execution that has succeeded to the next prefetched task, or returns nil if there is
// none. The execution has no slot then.
func (s *supervisor) passOn(e *execution) *execution {
	select {
	case next := <-s.tasks:
		e.settleOutput(true) // the result has the output
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begin(next, e.slot)
		e.slot = 0
		return next
	default:
		return nil
	}
}

// begin gives a slot to an execution. The caller has the lock mu.
func (s *supervisor) begin(e *execution, slot int) {
	e.slot = slot
	s.stock.began[slot] = time.Now()
}

func (e *execution) hasSlot() bool { return e.slot > 0 }

// freesSlot reports whether the slot of an execution that has ended becomes free when its report is accepted.
func (e *execution) freesSlot() bool { return e.slot > 0 && e.dir == nil && e.report.Succeeds() }

// fill starts prefetched tasks in free slots, and in those whose results are not sent yet.
func (x *exchange) fill() {
	if len(x.tasks) == 0 {
		return
	}
	if x.mayNotPassOn() {
		x.giveBack()
		return
	}
	for n := x.freeSlots(); n > 0; n-- {
		select {
		case e := <-x.tasks:
			x.mu.Lock()
			x.begin(e, x.takeSlot())
			x.mu.Unlock()
			go x.runSlot(e)
		default:
			return
		}
	}
	for _, e := range x.results {
		if !e.freesSlot() {
			continue
		}
		if next := x.passOn(e); next != nil {
			go x.runSlot(next)
		}
	}
}

// giveBack gives all prefetched tasks back that have not started.
func (x *exchange) giveBack() {
	for {
		select {
		case e := <-x.tasks:
			e.cause = errGivenBack
			e.end(nil)
			x.add(e)
			x.ripe = true
		default:
			return
		}
	}
}

// takeSlot takes the free slot with the lowest number, and returns the number. The slots of the process's Workers have
// different numbers. The caller has the lock mu.
func (s *supervisor) takeSlot() int {
	i := slices.Index(s.taken, false)
	if i < 0 {
		i = len(s.taken)
		s.taken = append(s.taken, false)
	}
	s.taken[i] = true
	s.busy++
	return s.first + i + 1
}

func (s *supervisor) freeSlots() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots() - s.busy
}

// answered handles the answer to an execution's report. A report is dropped only if the task no longer belongs to this
// worker, or if the worker gives up reporting.
func (e *execution) answered(ctx context.Context) {
	answer := e.report.Err
	e.mustReport = answer != nil && !errors.As(answer, new(*tdf.StateError))
	switch {
	case e.mustReport:
	case answer != nil:
		e.s.drop(e, answer)
	default:
		e.reportAccepted(ctx)
		e.s.leaveSlot(e, e.report.Succeeds())
	}
}

// drop drops the report of an execution whose task no longer belongs to this worker.
func (s *supervisor) drop(e *execution, reason error) {
	e.logDropped(reason)
	s.freeDropped(e)
}

func (e *execution) logDropped(reason error) { e.log.Info("dropped", "reason", reason) }

// logUndelivered logs that the worker stops before Redis has accepted a report. If the round printed something, only
// its output files have the output now. settleOutput then keeps the files, and logs where they are.
func (e *execution) logUndelivered(reason error) {
	if e.cause != nil || e.record == nil {
		e.logDropped(reason)
		return
	}
	e.log.Warn("the result is dropped", "reason", reason)
}

// freeDropped ends an execution whose report Redis has not accepted.
func (s *supervisor) freeDropped(e *execution) {
	e.dropped = true
	s.leaveSlot(e, e.isPrefetched() && e.cause != nil) // a prefetched task that was lost has not failed
	s.haveNews()                                       // the user who cancelled the task may wait for this
}

// leaveSlot ends an execution. It frees the slot after the configured pause, and after the round's directory has been
// removed. So there are never more directories than slots, however long their removal takes.
func (s *supervisor) leaveSlot(e *execution, success bool) {
	defer s.work.Done()
	e.settleOutput(e.stored || errors.Is(e.cause, errDiskFull)) // if the disk is full, kept files would keep it full
	s.occupancy.add(-1)
	s.mu.Lock()
	delete(s.held, e)
	s.mu.Unlock()
	if e.slot == 0 {
		return
	}
	pause := s.cfg.SleepAfterSuccess
	if !success {
		pause = s.cfg.SleepAfterFailure
	}
	short := s.shortages.ended(e.slot, e.cause, time.Now())
	s.endOnFullDisk(e.cause, short)
	pause = max(pause, short)
	if pause == 0 && e.dir == nil {
		s.freeSlot(e.slot)
		return
	}
	s.pauses.Go(func() {
		if e.dir != nil {
			// best effort: the next start of the worker removes the rest
			_ = e.dir.RemoveUntil(func() bool { return s.reporting.Err() != nil })
		}
		s.sleep(s.claiming, pause)
		s.freeSlot(e.slot)
	})
}

func (s *supervisor) freeSlot(slot int) {
	s.mu.Lock()
	s.busy--
	s.taken[slot-s.first-1] = false
	s.mu.Unlock()
	s.freed.give()
}
