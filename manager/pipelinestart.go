package manager

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A starter runs a function of Start, and holds the definitions whose tasks Run has not opened yet. These are at most
// MaxStep definitions or 4 MiB, and in addition the definitions of one call of Stage.Open.
type starter struct {
	cancel      context.CancelFunc
	definitions chan []Definition
	returned    chan struct{} // closed when the function has returned
	err         error         // why the function has failed; valid after it has returned
	exited      bool          // whether the function has ended its goroutine instead of returning
	ended       bool          // whether fill has seen that the function has returned
	unopened
}

// unopened holds definitions whose tasks Run has not opened yet.
type unopened struct {
	pending []task.Properties
	bytes   int    // of pending
	done    int    // the number of definitions before pending
	digest  string // the digest of these definitions
}

func newStarter(ctx context.Context, f StageFunc) *starter {
	x := &starter{definitions: make(chan []Definition), returned: make(chan struct{}), exited: true}
	ctx, x.cancel = context.WithCancel(ctx)
	go func() {
		defer close(x.returned)
		x.err = callStage(ctx, f, &Stage{func(definitions []Definition) {
			select {
			case x.definitions <- definitions:
			case <-ctx.Done():
			}
		}})
		x.exited = false
	}()
	return x
}

// callStage calls a function of a stage. If the function panics, callStage returns an error.
func callStage(ctx context.Context, f StageFunc, s *Stage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function of the stage panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return f(ctx, s)
}

// stop cancels the context of the function, and waits until the function has returned.
func (x *starter) stop() {
	x.cancel()
	<-x.returned
}

func (s *stageRun) stopOpening() {
	if s.opening != nil {
		s.opening.stop()
		s.opening = nil
	}
}

// fill waits until pending holds more than the largest chunk, until the function has returned, or until the time is
// over.
func (x *starter) fill(ctx context.Context, m *Manager, group string, until time.Time) error {
	over := time.NewTimer(time.Until(until))
	defer over.Stop()
	for !x.ended && len(x.pending) <= MaxStep && x.bytes <= maxStepBytes {
		var definitions []Definition
		select {
		case <-over.C:
			return nil
		case definitions = <-x.definitions:
		case <-x.returned:
			x.ended = true
			return x.result(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		tasks, err := m.stageTasks(group, definitions)
		if err != nil {
			return stageError{err}
		}
		x.pending = append(x.pending, tasks...)
		x.bytes += sizeOf(tasks)
	}
	return nil
}

// result returns the error of a function that has returned. If the function has called runtime.Goexit, this goroutine
// ends, too, as it does for the other functions. So t.FailNow ends the test that called Run.
func (x *starter) result(ctx context.Context) error {
	if ctx.Err() != nil { // the function may have returned early
		return context.Cause(ctx)
	}
	if x.exited {
		runtime.Goexit()
	}
	if x.err != nil {
		return stageError{x.err}
	}
	return nil
}

// drop removes the first n definitions from pending.
func (x *unopened) drop(n int) {
	for i := range n {
		x.digest = task.NextDigest(x.digest, &x.pending[i])
	}
	x.bytes -= sizeOf(x.pending[:n])
	x.pending = x.pending[n:]
	x.done += n
}

func sizeOf(tasks []task.Properties) int {
	u := redisstate.Unit{Open: tasks}
	return u.Size()
}

// skipTo drops the definitions whose tasks Run has opened before. If the time is over, it returns before it has dropped
// all of them.
func (x *starter) skipTo(ctx context.Context, m *Manager, group string, r task.StageRecord, until time.Time) error {
	for x.done < r.Done {
		if len(x.pending) == 0 {
			if err := x.fill(ctx, m, group, until); err != nil {
				return err
			}
		}
		if len(x.pending) == 0 && !x.ended {
			return nil
		}
		if len(x.pending) == 0 {
			return stageError{fmt.Errorf("the function opens %d tasks, but %d are already open; open the same tasks "+
				"at each start", x.done, r.Done)}
		}
		x.drop(min(len(x.pending), r.Done-x.done))
	}
	if x.done > r.Done || x.digest != r.Digest {
		return stageError{fmt.Errorf("the first %d definitions differ from those of an earlier start; open the same "+
			"tasks in the same order at each start, or use another name for the pipeline", r.Done)}
	}
	return nil
}

// openFirst opens tasks of a first stage in chunks. After a while, it leaves the rest to the next round.
func (x *pipelineRun) openFirst(ctx context.Context, s *stageRun) error {
	if s.opening == nil {
		s.opening = newStarter(ctx, s.start)
	}
	until := time.Now().Add(turn)
	if err := s.opening.skipTo(ctx, x.Manager, s.group, x.records[s.index], until); err != nil {
		return err
	}
	for time.Now().Before(until) {
		if err := s.opening.fill(ctx, x.Manager, s.group, until); err != nil {
			return err
		}
		if len(s.opening.pending) == 0 && !s.opening.ended {
			return nil
		}
		if last, err := x.openFirstChunk(ctx, s); last || err != nil {
			return err
		}
	}
	return nil
}

// openFirstChunk opens the next chunk of a first stage. It reports whether this was the last chunk.
func (x *pipelineRun) openFirstChunk(ctx context.Context, s *stageRun) (last bool, err error) {
	o := s.opening
	n := redisstate.OpenBatch(o.pending)
	last = o.ended && n == len(o.pending)
	after := o.unopened
	after.drop(n)
	u := redisstate.Unit{Open: o.pending[:n:n], Stage: &redisstate.StageChange{}}
	if x.records[s.index].Phase == task.StageUnopened {
		u.If = redisstate.NewGroup(s.group)
	}
	to := task.StageRecord{Phase: task.StageOpening, Done: after.done, Digest: after.digest}
	if last {
		to = task.StageRecord{Phase: task.StageOpened}
	}
	if err := x.openChunk(ctx, s, u, to); err != nil {
		return false, err
	}
	o.unopened = after
	if last {
		s.stopOpening()
	}
	return last, nil
}
