package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker/rounddir"
)

// A session is a worker at work: its slots, the executions that they hold, and the two loops
// that speak for all of them, the keeper (lease.go) and the reporter (report.go).
type session struct {
	*Worker
	told  context.Context // ends when the worker is told to stop, or has lost its name
	alive context.Context // ends when programs have to

	looping context.Context // ends when all is reported

	dismiss context.CancelCauseFunc // ends told
	abandon context.CancelCauseFunc // ends alive

	mu    sync.Mutex
	held  map[*execution]bool // claimed, and not yet reported
	busy  int                 // slots: those held, and those that pause
	taken []bool              // slots by their number, less one
	ended []*execution        // to be reported
	dirs  []*rounddir.Dir     // that no round has now
	made  int                 // directories of rounds, so far

	freed, renewed, claimed, reported signal
	renewing                          chan struct{} // who puts something in reports of what runs; one at a time
	work, loops, pauses               sync.WaitGroup
}

// A signal wakes the one who waits for it, or the next one who will.
type signal chan struct{}

func (s signal) give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// open starts the loops. What returns ends the session: when all that it holds is reported.
func (w *Worker) open(told context.Context) (s *session, close func()) {
	s = &session{
		Worker: w, held: map[*execution]bool{},
		renewing: make(chan struct{}, 1), freed: make(signal, 1), renewed: make(signal, 1), claimed: make(signal, 1), reported: make(signal, 1),
	}
	s.told, s.dismiss = context.WithCancelCause(told)
	s.alive, s.abandon = w.outlive(s.told, w.cfg.Grace, 0)
	reporting, endReports := w.outlive(s.told, w.reportBound(), w.answer)
	loops, stop := context.WithCancel(context.WithoutCancel(told))
	s.looping = loops
	s.loops.Go(func() { s.keep(loops) })
	s.loops.Go(func() { s.report(loops, reporting) })
	s.loops.Go(func() { s.share(loops) })
	if w.cfg.OnLeaseLost == onLeaseLostEnd {
		s.loops.Go(func() { s.endCutOff(loops) })
	}
	return s, func() {
		s.work.Wait()
		stop()
		s.loops.Wait()
		endReports(nil)
		s.abandon(nil)
		s.dismiss(nil)
		s.pauses.Wait()
		s.removeDirs()
	}
}

// takeUp begins what was claimed. The leases count from the first of the two times.
func (s *session) takeUp(c redisstate.Claimed, leased, received time.Time) {
	for _, claim := range c.Claims {
		e := s.newExecution(claim, c.Now, leased, received)
		e.log.Debug("claimed")
		ctx, end := context.WithCancelCause(s.alive)
		e.ctx, e.end = ctx, end
		s.mu.Lock()
		s.held[e] = true
		s.busy++
		e.slot = s.takeSlot()
		s.mu.Unlock()
		s.work.Add(1) // until it is reported
		go func() {
			if s.told.Err() != nil {
				e.cause = errStopping
			} else {
				e.run(ctx)
			}
			end(nil)
			s.hasEnded(e)
		}()
	}
	if len(c.Claims) > 0 {
		s.renewed.give()
		s.claimed.give()
	}
}

func (s *session) hasEnded(e *execution) {
	s.mu.Lock()
	s.ended = append(s.ended, e)
	s.mu.Unlock()
	s.reported.give()
}

// letGo frees the slot of an execution that is over, after a pause.
func (s *session) letGo(e *execution, well bool) {
	s.avoid.over(e.task.Program)
	s.mu.Lock()
	delete(s.held, e)
	s.mu.Unlock()
	pause := s.cfg.SleepAfterSuccess
	if !well {
		pause = s.cfg.SleepAfterFailure
	}
	s.work.Done()
	if pause == 0 {
		s.free(e)
		return
	}
	s.pauses.Go(func() {
		s.sleep(s.told, pause)
		s.free(e)
	})
}

func (s *session) free(e *execution) {
	s.mu.Lock()
	s.busy--
	s.taken[e.slot-1] = false
	s.mu.Unlock()
	s.freed.give()
}

// takeSlot returns the lowest number of a slot that is free.
func (s *session) takeSlot() int {
	i := slices.Index(s.taken, false)
	if i < 0 {
		i = len(s.taken)
		s.taken = append(s.taken, false)
	}
	s.taken[i] = true
	return i + 1
}

func (s *session) slotsFree() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots() - s.busy
}

// holds returns what the session holds, in no order.
func (s *session) holds() []*execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*execution, 0, len(s.held))
	for e := range s.held {
		all = append(all, e)
	}
	return all
}

// claimAll fills the free slots until the worker is told to stop.
func (s *session) claimAll() {
	waker := s.store.WakeWorker()
	defer waker.Close()
	again, resume := 0, false
	for s.told.Err() == nil {
		if s.drain.on() {
			wait(s.told, s.drain.changed)
			continue
		}
		free := s.slotsFree()
		if free == 0 {
			wait(s.told, s.freed)
			continue
		}
		asked, c, err := s.claim(free, resume)
		switch {
		case err != nil && s.told.Err() == nil:
			s.log.Error("claiming failed, trying again", "error", err)
			s.sleep(s.told, max(s.cfg.SleepAfterNoProcessClaimed, errorPause))
			continue
		case err != nil:
			return
		}
		resume = c.Unwanted > 0 || resume && len(c.Claims) > 0 // until a claim meets neither
		again++
		if len(c.Claims) > 0 {
			again = 0
		}
		if len(c.Claims) == asked || c.More && again < mostAgain {
			continue
		}
		again = 0
		switch {
		case c.More:
			s.sleep(s.told, againPause)
		case c.Unwanted > 0:
			s.sleep(s.told, min(s.idle(c), unwantedPause))
		default:
			waker.Wait(s.told, s.idle(c))
		}
	}
}

// A claim that met many tasks of programs that the worker avoids goes on behind them: so often at
// once, and then after a pause, so that Redis has time for others.
const (
	mostAgain  = 10
	againPause = 50 * time.Millisecond
)

// claim is not broken off at once when the worker is told to stop: a task that was handed out
// in an answer that nobody reads would count as lost.
func (s *session) claim(most int, resume bool) (asked int, c redisstate.Claimed, err error) {
	ctx, end := s.outlive(s.told, s.answer, s.answer)
	defer end(nil)
	avoid, probing := s.avoid.now()
	if probing {
		most = 1
	}
	c, err = s.store.Claim(ctx, redisstate.ClaimRequest{
		Worker: s.name, Most: most, Lease: tdf.For(s.cfg.Lease), Avoid: avoid, Resume: resume,
	})
	if err != nil {
		return most, c, err
	}
	for _, claim := range c.Claims {
		s.avoid.claimed(claim.Task.Program)
	}
	if probing && !c.More {
		s.avoid.notThere()
	}
	received := time.Now()
	s.takeUp(c, s.renewLate(ctx, c), received)
	return most, c, nil
}
