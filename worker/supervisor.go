package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker/record"
	"github.com/tdf-framework/tdf/worker/resources"
	"github.com/tdf-framework/tdf/worker/rounddir"
)

// A supervisor is a running worker: its slots, its executions and their loops. One loop renews the leases (lease.go).
// Another loop reports the rounds that run (livereport.go). A third loop reports executions that have ended
// (report.go).
type supervisor struct {
	*Worker
	// What ends these contexts, and when, is a table in docs/operations.md, "Stopping a worker". All but stopping and
	// delivering also end with looping.
	stopping   context.Context // done when the worker must claim no more
	awaiting   context.Context // done when the worker gives up waiting for the answer to a claim
	alive      context.Context // done when programs must end
	leaving    context.Context // done when the worker leaves handlers behind that ignore the end of alive
	looping    context.Context // done when all executions are reported
	delivering context.Context // done when a worker that stops gives up reporting results and removing directories

	endClaims   context.CancelCauseFunc // ends stopping
	endPrograms context.CancelCauseFunc // ends alive

	nameLost atomic.Pointer[broker.NameTaken] // nil unless another worker has taken the name

	mu    sync.Mutex
	held  map[*execution]bool // executions that are not yet reported
	ended []*execution        // those that have ended and are not in a report yet
	stock *stock              // prefetched tasks
	busy  int                 // slots that have an execution or pause after an execution, and are not handed over
	// slots for the tasks of claims that are under way, with those that executions hand over
	reserved int
	full     bool            // the claiming loop waits for a free slot
	taken    []bool          // whether each slot is busy
	left     []string        // rounds whose handlers were left behind
	diskFull error           // ends the worker
	dirs     []*rounddir.Dir // directories that no round uses at present

	outputs []*record.Slot // the output files of the slots

	freed                      signal      // there may be a free slot, or there are more resources free
	refused                    atomic.Bool // a claim waits for the end of the one that uses the free resources
	claimed, renewed, reported signal
	reporting                  chan struct{} // a lock, so that only one call at a time reports running rounds
	work, loops, pauses        sync.WaitGroup

	once    atomic.Bool // no report claims tasks, because the worker runs one task only
	passing atomic.Bool // the last claims have met tasks that the worker must not get
}

// A signal wakes one waiting goroutine, or the next one that waits.
type signal chan struct{}

func (s signal) give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// open starts a supervisor with its loops. end waits until all executions are reported, and ends the supervisor.
func (w *Worker) open(stopping context.Context) (s *supervisor, end func()) {
	s = newSupervisor(w)
	s.stopping, s.endClaims = context.WithCancelCause(stopping)
	looping, stop := context.WithCancel(context.WithoutCancel(stopping))
	s.looping = looping
	s.awaiting, _ = w.outlive(s.stopping, looping, w.answer, w.answer)
	s.alive, s.endPrograms = w.outlive(s.stopping, looping, w.cfg.Grace, 0)
	s.leaving, _ = w.outlive(s.alive, looping, max(w.cfg.KillGrace, w.leaveBound), w.leaveBound)
	var endDelivering context.CancelCauseFunc
	s.delivering, endDelivering = w.outlive(s.stopping, context.WithoutCancel(stopping), w.reportBound(), w.answer)
	s.startLoops()
	if w.cfg.OnLeaseLost == onLeaseLostEnd {
		s.loops.Go(func() { s.endWhenLeasesEnd(looping) })
	}
	return s, func() {
		s.work.Wait()
		stop()
		s.loops.Wait()
		s.endClaims(nil)
		s.pauses.Wait()
		endDelivering(nil)
		s.removeDirs()
	}
}

func newSupervisor(w *Worker) *supervisor {
	return &supervisor{
		Worker: w, held: map[*execution]bool{}, stock: newStock(), reporting: make(chan struct{}, 1),
		freed: make(signal, 1), claimed: make(signal, 1), renewed: make(signal, 1), reported: make(signal, 1),
	}
}

// startLoops starts the loops that end with the context looping.
func (s *supervisor) startLoops() {
	looping, delivering := s.looping, s.delivering
	s.loops.Go(func() { s.keepLeases(looping) })
	s.loops.Go(func() { s.reportRunning(looping) })
	s.loops.Go(func() { s.report(looping, delivering) })
	s.loops.Go(func() { s.keepStock(looping) })
}

// executions returns all executions, in no particular order.
func (s *supervisor) executions() []*execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.held))
}

// start starts the executions of claimed tasks. leased is the time from which the leases count. received is the time at
// which the answer to the claim came.
func (s *supervisor) start(c redisstate.ClaimResult, leased, received time.Time, lent *resources.Loan) {
	clock := &reading{c.Now, received}
	for _, claim := range c.Claims {
		e := s.newExecution(claim, clock, &leased)
		e.started = c.Started
		s.occupancy.add(1)
		e.log.Debug("claimed")
		ctx, end := context.WithCancelCause(s.alive)
		e.ctx, e.end = ctx, end
		e.takeShare(lent)
		s.work.Add(1) // until the execution is reported
		s.mu.Lock()
		s.held[e] = true
		if claim.Task.Current().Prefetched {
			s.putInStock(e)
			s.mu.Unlock()
			continue
		}
		s.busy++
		s.begin(e, s.takeSlot())
		s.mu.Unlock()
		go s.runInSlot(e)
	}
	if len(c.Claims) > 0 {
		s.renewed.give()
		s.claimed.give()
	}
}

// runInSlot runs an execution, and then prefetched tasks in the same slot.
func (s *supervisor) runInSlot(e *execution) {
	for e != nil {
		switch {
		case s.stopping.Err() != nil:
			e.cause = errStopping
		case e.noShare, e.slot > s.first+s.slots():
			e.cause = errNoSlot
		case e.ctx.Err() != nil:
			e.cause = context.Cause(e.ctx)
		case e.isOverdue():
			e.cause = errGivenBack
		default:
			e.run(e.ctx)
		}
		e.end(nil)
		e.freeShare()
		next := s.next(e)
		s.queueReport(e)
		e = next
	}
}

func (s *supervisor) queueReport(e *execution) {
	s.mu.Lock()
	s.ended = append(s.ended, e)
	s.mu.Unlock()
	s.reported.give()
}

// freeDropped ends an execution whose report Redis has not accepted, as freeAfterPause does.
func (s *supervisor) freeDropped(e *execution) {
	e.dropped = true
	s.freeAfterPause(e, false)
}

// freeAfterPause ends an execution. It frees the slot after the configured pause, and after the round's directory has
// been removed. So there are never more directories than slots, however long their removal takes.
func (s *supervisor) freeAfterPause(e *execution, success bool) {
	e.settleOutput()
	s.occupancy.add(-1)
	s.mu.Lock()
	delete(s.held, e)
	s.mu.Unlock()
	if e.slot == 0 || e.passedOn {
		s.work.Done()
		return
	}
	pause := s.cfg.SleepAfterSuccess
	if !success {
		pause = s.cfg.SleepAfterFailure
	}
	short := s.shortages.ended(e.slot, e.cause, time.Now())
	s.endOnFullDisk(e.cause, short)
	pause = max(pause, short)
	s.work.Done()
	if pause == 0 && e.dir == nil {
		s.freeSlot(e)
		return
	}
	s.pauses.Go(func() {
		if e.dir != nil {
			// best effort: the next start of the worker removes the rest
			_ = e.dir.RemoveUntil(func() bool { return s.delivering.Err() != nil })
		}
		s.sleep(s.stopping, pause)
		s.freeSlot(e)
	})
}

func (s *supervisor) freeSlot(e *execution) {
	s.mu.Lock()
	if !e.handedOver {
		s.busy--
	}
	e.handedOver = false
	s.taken[e.slot-s.first-1] = false
	s.mu.Unlock()
	s.startFromStock()
	s.wake(s.pool != nil) // a task may fit now that did not fit before
}

// wake wakes the claiming loop if it waits for a slot, and otherwise only if idle is true.
func (s *supervisor) wake(idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if idle || s.full {
		s.freed.give()
	}
}

// takeSlot takes the free slot with the lowest number, and returns the number. The slots of the process's Workers have
// different numbers.
func (s *supervisor) takeSlot() int {
	i := slices.Index(s.taken, false)
	if i < 0 {
		i = len(s.taken)
		s.taken = append(s.taken, false)
	}
	s.taken[i] = true
	return s.first + i + 1
}

// claimUntilStopped keeps the slots filled until the worker must claim no more.
func (s *supervisor) claimUntilStopped() {
	more := 0
	for s.stopping.Err() == nil {
		if s.drain.on() {
			wait(s.stopping, s.drain.changed)
			continue
		}
		began := time.Now()
		asked, c, err := s.claimForFreeSlots()
		switch {
		case asked == 0:
			wait(s.stopping, s.freed)
			continue
		case err != nil && s.stopping.Err() == nil:
			s.log.Error("claiming failed, trying again", "error", err)
			s.sleep(s.stopping, min(max(s.cfg.SleepAfterNoProcessClaimed, errorPause), longestPause))
			continue
		case err != nil:
			return
		}
		s.passing.Store(c.Unwanted > 0 || s.passing.Load() && len(c.Claims) > 0)
		more++
		if len(c.Claims) > 0 {
			more = 0
		}
		if len(c.Claims) >= asked || c.More && more < maxClaimsAtOnce {
			continue
		}
		more = 0
		switch {
		case c.MustWait:
			s.sleep(s.stopping, redisstate.RoomPause)
		case c.More:
			s.sleep(s.stopping, claimPause)
		case c.Unwanted > 0:
			s.sleep(s.stopping, min(s.idle(c), unwantedPause))
		default:
			if s.await(c) {
				s.sleep(s.stopping, s.claimGap-time.Since(began))
			}
		}
	}
}

// A claim skips a bounded number of tasks that the worker must not get. Then the worker continues with another claim.
// After maxClaimsAtOnce claims without a task the worker pauses, so that Redis has time for other clients.
const (
	maxClaimsAtOnce = 10
	claimPause      = 50 * time.Millisecond
)

// claimForFreeSlots claims tasks for the free slots and starts them. It returns the number of tasks that it asked for.
func (s *supervisor) claimForFreeSlots() (asked int, c redisstate.ClaimResult, err error) {
	free, prefetch := s.reserve(nil)
	if free == 0 {
		return 0, c, nil
	}
	defer s.endReservation(free, prefetch, nil)
	return s.claim(free, prefetch)
}

// claim claims tasks and starts them. It asks for at most the given number of tasks, and returns the number that it
// asked for. A worker that stops still waits for the answer, because the tasks in an unread answer would become lost.
func (s *supervisor) claim(most, prefetch int) (asked int, c redisstate.ClaimResult, err error) {
	lent, ok := s.lend()
	if !ok {
		return 0, c, nil
	}
	defer s.endLoan(lent)
	r := s.request(most, prefetch, lent)
	if c, err = s.broker.Claim(s.awaiting, r); err != nil {
		return most, c, err
	}
	s.startClaimed(s.awaiting, c, time.Now(), lent)
	return most, c, nil
}
