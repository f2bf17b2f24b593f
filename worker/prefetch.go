package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
)

// A worker whose runs are short would wait for Redis as long as it works. So it prefetches tasks: it claims more than
// it has free slots, and each slot starts its next task without a call. The results travel together (docs/lifecycle.md,
// "Prefetched tasks").
const (
	shortRun      = 20 * time.Millisecond // the mean of the last runs, from which nothing is prefetched
	prefetchedFor = 50 * time.Millisecond // the expected work that a slot has prefetched
	reportedAfter = 25 * time.Millisecond // a result waits for others once or twice as long
	lastRuns      = 16                    // the runs that count
	refillAt      = 4                     // claims when the stock has fallen to this part of its goal
	mostPerSlot   = 100                   // prefetched tasks
	mostInStock   = 500                   // prefetched tasks of all slots
)

// errGivenBack ends the execution of a prefetched task that the worker gives back.
var errGivenBack = errors.New("its worker has claimed it too early")

// A stock is what a worker has prefetched. The lock of all fields is the supervisor's mu.
type stock struct {
	short, most time.Duration // shortRun and prefetchedFor, except in tests

	tasks  []*execution // not started yet
	coming int          // how many more the claims under way may return

	runs  [lastRuns]time.Duration // of the last rounds that ended
	n     int                     // how many rounds have ended
	began map[int]time.Time       // when the running round of each slot began

	filled       signal
	waited, ripe bool // results have waited for once, and twice, reportedAfter
}

func newStock() *stock {
	return &stock{
		short: shortRun, most: prefetchedFor, began: map[int]time.Time{}, filled: make(signal, 1),
	}
}

// ended records that the round of a slot has ended. ran says whether it ran to its end.
func (k *stock) ended(slot int, ran bool) {
	if ran {
		k.runs[k.n%lastRuns] = time.Since(k.began[slot])
		k.n++
	}
	delete(k.began, slot)
}

// goal returns how many tasks the slots together should have prefetched.
func (k *stock) goal(slots int) int {
	if k.n < lastRuns {
		return 0
	}
	sum := time.Duration(0)
	for _, d := range k.runs {
		sum += d
	}
	mean := max(sum/lastRuns, time.Microsecond)
	if mean >= k.short {
		return 0
	}
	return min(slots*min(mostPerSlot, int(k.most/mean)), mostInStock)
}

// hasLongRun reports whether a round takes longer than all prefetched tasks of its slot should take.
func (k *stock) hasLongRun() bool {
	for _, began := range k.began {
		if time.Since(began) > k.most {
			return true
		}
	}
	return false
}

// toPrefetch returns how many tasks a claim may prefetch. A worker that offers resources prefetches nothing, because a
// task holds its share only while it runs. The caller has the lock mu.
func (s *supervisor) toPrefetch() int {
	if s.pool != nil {
		return 0
	}
	if s.once.Load() || s.cfg.SleepAfterSuccess > 0 {
		return 0
	}
	if s.stopping.Err() != nil || s.drain.on() || s.passing.Load() || s.failures.mayNotStart() || s.stock.hasLongRun() {
		return 0
	}
	if s.hasEnough() {
		return 0
	}
	return max(0, s.stock.goal(s.slots())-len(s.stock.tasks)-s.stock.coming)
}

// hasEnough reports whether the stock needs no further tasks yet. The caller has the lock mu.
func (s *supervisor) hasEnough() bool {
	return len(s.stock.tasks)+s.stock.coming > s.stock.goal(s.slots())/refillAt
}

// mayGather reports whether the results that have ended wait for further ones, because the slots still have work.
func (s *supervisor) mayGather() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stock.ripe || s.stopping.Err() != nil || s.delivering.Err() != nil {
		return false
	}
	if slices.ContainsFunc(s.ended, (*execution).isWaiting) {
		return false
	}
	return s.hasEnough()
}

// isWaiting reports whether the slot of an execution that has ended waits for its report.
func (e *execution) isWaiting() bool { return !e.passedOn }

// putInStock keeps a prefetched task. The caller has the lock mu.
func (s *supervisor) putInStock(e *execution) {
	s.stock.tasks = append(s.stock.tasks, e)
	s.stock.filled.give()
}

// startFromStock starts prefetched tasks in free slots. After a round that could not be started, it gives them back
// instead, because they may be of the same program.
func (s *supervisor) startFromStock() {
	if !s.hasStock() {
		return
	}
	if s.failures.mayNotStart() {
		s.giveBack()
		return
	}
	for {
		s.mu.Lock()
		if len(s.stock.tasks) == 0 || s.busy+s.reserved >= s.slots() || s.stopping.Err() != nil || s.drain.on() {
			s.mu.Unlock()
			return
		}
		e := s.stock.take()
		s.busy++
		s.begin(e, s.takeSlot())
		s.mu.Unlock()
		go s.runInSlot(e)
	}
}

func (k *stock) take() *execution {
	e := k.tasks[0]
	k.tasks = slices.Delete(k.tasks, 0, 1)
	return e
}

// next gives the slot of an execution that has ended to a prefetched task. It returns nil if there is none, or if the
// slot must first wait for the report of the round, since a failure may pause the slot.
func (s *supervisor) next(e *execution) *execution {
	succeeded := e.cause == nil && e.reason == "" && !e.result.HasFailed(e.task.FailOn)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stock.ended(e.slot, e.cause == nil)
	if len(s.stock.tasks) == 0 || !succeeded || e.dir != nil || s.stopping.Err() != nil || s.drain.on() {
		return nil
	}
	return s.passOn(e)
}

// passOn gives the slot of an execution that has succeeded to the next prefetched task. The caller has the lock mu.
func (s *supervisor) passOn(e *execution) *execution {
	next := s.stock.take()
	if e.record != nil { // the result has its output
		e.record.Release()
		e.record = nil
	}
	e.passedOn = true
	s.begin(next, e.slot)
	return next
}

// begin gives a slot to an execution. The caller has the lock mu.
func (s *supervisor) begin(e *execution, slot int) {
	e.slot = slot
	s.stock.began[slot] = time.Now()
	if e.task.Current().Prefetched {
		e.started(slot, e.claim)
	}
}

// isOverdue reports whether a prefetched task has expired before its start. Then the server expires it.
func (e *execution) isOverdue() bool {
	c := e.clock.Load()
	return e.task.Current().Prefetched && c.redis.Add(tdf.For(time.Since(c.local))) >= e.task.OpenUntil()
}

// keepStock gives the prefetched tasks back when the worker stops or drains, and when a round takes longer than all
// tasks of its slot should take. It also ends the waiting of results.
func (s *supervisor) keepStock(ctx context.Context) {
	for wait(ctx, s.stock.filled) {
		for s.hasStock() {
			select {
			case <-ctx.Done():
			case <-s.stopping.Done():
			case <-s.after(reportedAfter):
			}
			s.mu.Lock()
			s.stock.ripe, s.stock.waited = s.stock.waited, len(s.ended) > 0
			long := s.stock.hasLongRun()
			s.mu.Unlock()
			s.reported.give()
			if long || s.stopping.Err() != nil || s.drain.on() {
				s.giveBack()
			}
			s.startFromStock()
		}
	}
}

func (s *supervisor) hasStock() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stock.tasks) > 0
}

// giveBack gives all prefetched tasks back that have not started.
func (s *supervisor) giveBack() {
	s.mu.Lock()
	all := s.stock.tasks
	s.stock.tasks = nil
	for _, e := range all {
		e.cause = errGivenBack
	}
	s.ended = append(s.ended, all...)
	s.stock.ripe = true
	s.mu.Unlock()
	for _, e := range all {
		e.end(nil)
	}
	s.reported.give()
}
