package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Runner in this process is code that the worker cannot end. It runs in a goroutine of its own. So it
// does not keep the slot for ever, even if it never returns or ends its goroutine.

var (
	errLeft   = errors.New("the call has not returned")
	errGoexit = errors.New("the handler ended its goroutine by runtime.Goexit, as t.FailNow does")
)

// callApart calls f in a new goroutine, and returns its results. The error is errLeft if the call has not returned when
// leave is closed, and errGoexit if the call ends its goroutine. The goroutine is not used again, because a handler may
// have changed its thread: Go ends a locked thread with its goroutine.
func callApart[T any](leave <-chan struct{}, f func() (T, error)) (T, error) {
	type results struct {
		v   T
		err error
	}
	returned := make(chan results, 1)
	go func() {
		r := results{err: errGoexit}
		defer func() { returned <- r }()
		r.v, r.err = f()
	}()
	select {
	case r := <-returned:
		return r.v, r.err
	case <-leave:
	}
	select {
	case r := <-returned: // at the same time
		return r.v, r.err
	default:
		var none T
		return none, errLeft
	}
}

// runApart runs the round in this process.
func (e *execution) runApart(ctx context.Context, runner Runner, r *Round, mask func(string) string) (Ended, error) {
	ended, err := callApart(e.s.leaving.Done(), func() (Ended, error) { return runInProcess(ctx, runner, r, mask) })
	switch err {
	case errLeft:
		e.s.leave(e)
	case errGoexit:
		return failed(Ended{Exit: exitPanic}, err.Error()), context.Cause(ctx)
	}
	return ended, err
}

// leave records that the worker stops although e's handler has not returned.
func (s *supervisor) leave(e *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, fmt.Sprintf("task %d of program %q", e.task.ID, e.task.Program))
}

// leftError returns an error that names the rounds whose handlers have not returned. It is nil if all have returned.
func (s *supervisor) leftError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left) == 0 {
		return nil
	}
	slices.Sort(s.left)
	return fmt.Errorf("stop worker %s: handlers ignore the end of their context and still run: %s", s.name,
		strings.Join(s.left, ", "))
}
