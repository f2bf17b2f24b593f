package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A call is a callback that runs in a goroutine of its own, so that the run can archive other tasks meanwhile.
type call struct {
	task   *Finished
	slots  *slots
	err    error
	exited bool // whether the callback called runtime.Goexit, as t.FailNow of a test does
}

// slots limit how many callbacks run at once.
type slots struct {
	size, used int
	slow       bool // whether the last task that needed a slot did not get one soon
	next       int  // how many tasks to read together
}

// calls are the callbacks that run. Only the goroutine of the run uses them, except for ended and wake.
type calls struct {
	running map[int64]*call // by the task
	mu      sync.Mutex
	ended   []*call
	wake    chan struct{} // has a token if a call may have ended
}

// patience is how long a round waits for a callback to end. After that, the round waits for none, so that slow
// callbacks of one group do not delay those of other groups.
const patience = 50 * time.Millisecond

// errExited ends a run whose callback called runtime.Goexit.
var errExited = errors.New("a callback called runtime.Goexit")

// batch returns how many tasks to read together.
func (s *slots) batch() int {
	if s.slow {
		return max(1, s.size-s.used)
	}
	return min(max(s.next, leastBatch), tasksPerBatch)
}

// learn makes batches larger while callbacks are quick. A large batch of slow callbacks would keep the tasks from other
// managers for long, and call callbacks with old data.
func (s *slots) learn(batch int, took time.Duration) {
	if took < patience {
		s.next = max(s.next, 2*batch)
	} else {
		s.next = batch / 2
	}
}

// newSlots sets the slots of each group. Without Concurrency, all groups share one slot.
func (r *run) newSlots() {
	r.slots = map[string]*slots{}
	one := &slots{size: 1}
	for _, group := range r.scope {
		if r.Concurrency > 0 {
			one = &slots{size: r.Concurrency}
		}
		if r.InOrder {
			one.size = 1
		}
		r.slots[group] = one
	}
}

// waits reports whether a round waits for all its callbacks. Without Concurrency, rounds have always done so. The
// clock of a test must not advance while callbacks run.
func (r *run) waits() bool { return r.Concurrency == 0 || r.Manager.in().Wait != nil }

// start calls a task's callback. The caller has a free slot.
func (r *run) start(ctx context.Context, t *Finished, s *slots) {
	c := &call{task: t, slots: s, exited: true}
	s.used++
	r.calls.running[t.ID] = c
	f := r.callback(t.State)
	if f == nil {
		r.warn(t)
	}
	go func() {
		defer func() {
			r.calls.mu.Lock()
			r.calls.ended = append(r.calls.ended, c)
			r.calls.mu.Unlock()
			r.calls.tell()
		}()
		c.err = r.execute(ctx, f, t)
		c.exited = false
	}()
}

// tell wakes the goroutine of the run.
func (c *calls) tell() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (r *run) execute(ctx context.Context, f Callback, t *Finished) (err error) {
	if f != nil {
		if err := recovered(ctx, f, t); err != nil {
			return err
		}
	}
	if t.unit, err = r.unit(ctx, &t.Step, t.Task); err != nil {
		return fmt.Errorf("step of the callback: %w", err)
	}
	return nil
}

// recovered calls a callback. If the callback panics, recovered returns an error.
func recovered(ctx context.Context, f Callback, t *Finished) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("callback panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return f(ctx, t)
}

// collect handles the callbacks that have ended, and archives the tasks that must not wait longer.
func (r *run) collect(ctx context.Context) error {
	r.calls.mu.Lock()
	ended := r.calls.ended
	r.calls.ended = nil
	r.calls.mu.Unlock()
	var err error
	for _, c := range ended {
		delete(r.calls.running, c.task.ID)
		c.slots.used--
		if c.exited {
			err = errExited
			continue
		}
		err = cmp.Or(err, r.conclude(ctx, c))
	}
	if err != nil || r.batch.left() > 0 {
		return err
	}
	return r.archive(ctx)
}

// conclude handles the result of a callback.
func (r *run) conclude(ctx context.Context, c *call) error {
	t, err := c.task, c.err
	switch {
	case errors.Is(err, ErrNotYet):
		r.backoff.notYet(t.ID, r.rounds, err)
		r.summary.Waiting++
	case err != nil && ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())):
		// The callback ended because ctx ended. The next Run calls it again.
	case err != nil:
		r.later(ctx, err, t)
	default:
		r.batch.take(t)
		if r.batch.left() == 0 {
			return r.archive(ctx)
		}
	}
	return nil
}

// until waits until a condition holds, and handles the callbacks that end meanwhile. It reports whether the condition
// holds. If long is false, it waits no longer than the patience of the round.
func (r *run) until(ctx context.Context, long bool, holds func() bool) (bool, error) {
	for end := time.Now().Add(r.patience); ; {
		if err := r.collect(ctx); err != nil || holds() {
			return true, err
		}
		left := r.batch.left()
		if !long {
			left = min(left, time.Until(end))
			if left <= 0 || ctx.Err() != nil {
				r.patience = 0
				return false, nil
			}
		}
		timer := time.NewTimer(left)
		select {
		case <-r.calls.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// slot waits for a free slot. It reports whether there is one.
func (r *run) slot(ctx context.Context, s *slots) (bool, error) {
	free, err := r.until(ctx, r.waits(), func() bool { return s.used < s.size })
	s.slow = !free
	return free, err
}

// drain waits for callbacks, and archives their tasks. If all is false, it only waits for them as long as a round does.
func (r *run) drain(ctx context.Context, all bool) error {
	_, err := r.until(ctx, all || r.waits(), func() bool { return len(r.calls.running) == 0 })
	return cmp.Or(err, r.archive(ctx))
}

// wakeFor returns a context that also ends when a callback ends.
func (r *run) wakeFor(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if len(r.calls.running) > 0 {
		go func() {
			select {
			case <-r.calls.wake:
				r.calls.tell()
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// later makes Run call the callbacks of these tasks again after a pause, or not again after Attempts. The pause begins
// at the present time, and not at the beginning of the round, which may be long ago.
func (r *run) later(ctx context.Context, err error, tasks ...*Finished) {
	now, unknown := r.in().Store.Now(ctx)
	if unknown != nil { // ctx has ended
		now = r.now
	}
	for _, t := range tasks {
		again := r.backoff.addFailure(t.ID, r.rounds, now)
		if errors.Is(err, conn.ErrFull) {
			again.attempts--
		}
		again.givenUp = r.Attempts > 0 && again.attempts >= r.Attempts
		r.summary.Waiting++
		r.say(ctx, t, err, again, now)
	}
}
