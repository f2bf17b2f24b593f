package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/redisstate"
)

// errTimedOut is why a program ends that ran for longer than its task's timeout.
var errTimedOut = errors.New("the task's timeout is over")

// An execution is what becomes of one claim.
type execution struct {
	s     *session
	task  *tdf.Task
	claim string
	wrong error // what makes no sense about the task
	slot  int   // from 1 up: no two that are held have the same
	log   *slog.Logger

	clock   atomic.Pointer[reading]
	renewed atomic.Pointer[time.Time] // the lease began then, or later
	ctx     context.Context           // ends when the program has to
	end     context.CancelCauseFunc   // ends ctx
	began   time.Time                 // when the program did
	program fetch.Program             // of a program that was fetched, or is there

	mu   sync.Mutex
	desk *desk // while the round runs: what it prints and reports
	told bool  // something of it was reported while it ran

	number   atomic.Int64 // 1; above that, earlier executions of this round left files (docs/programs.md)
	followed atomic.Bool  // somebody watches it
	result   tdf.Result   // when it has ended
	cause    error        // why it was cut short; or nil
	sound    bool         // the task is valid, so that the program was tried
	why      string       // what is wrong, where run.sh does not say so itself
}

// A reading of Redis's clock says when the task's timeout began to count: by that clock, and by
// ours, which measures how long it is ago.
type reading struct {
	redis tdf.Time
	local time.Time
}

func (s *session) newExecution(c redisstate.Claim, now tdf.Time, leased, received time.Time) *execution {
	e := &execution{
		s: s, task: c.Task, claim: c.ID, wrong: c.Invalid,
		log: s.log.With("task", c.Task.ID, "round", c.Task.Round, "program", c.Task.Program),
	}
	e.clock.Store(&reading{now, received})
	e.renewed.Store(&leased)
	return e
}

// run runs the round to its end, and leaves its result, or with what there is of it why it was
// cut short.
func (e *execution) run(ctx context.Context) {
	result, err := e.attempt(ctx)
	e.cause = cutShort(ctx, err)
	if err != nil && e.cause == nil {
		e.why = err.Error()
		result.Refused, result.Reason = true, appendLine(e.why, result.Reason)
	}
	c := e.clock.Load()
	if e.began.IsZero() {
		e.began = c.local
	}
	result.Started = c.redis.Add(tdf.For(e.began.Sub(c.local)))
	if result.Seconds == 0 {
		result.Seconds = tdf.For(time.Since(e.began))
	}
	e.result = result
}

// attempt returns an error where the program could not be run, or not to its end, or where what
// it left is refused.
func (e *execution) attempt(ctx context.Context) (tdf.Result, error) {
	if e.wrong != nil {
		return tdf.Result{}, e.wrong
	}
	args, err := tdf.SplitInput(e.task.Input)
	if err != nil {
		return tdf.Result{}, err
	}
	e.sound = true
	if p, ok := e.s.Runner.(preparer); ok {
		if err := p.prepare(ctx, e); err != nil {
			return tdf.Result{}, err
		}
	}
	ctx, end := e.limited(ctx)
	defer end()
	return e.atDesk(ctx, args)
}

// limited returns a context that ends, by errTimedOut, when the task's timeout is over.
func (e *execution) limited(ctx context.Context) (context.Context, func()) {
	if e.task.Timeout == tdf.Forever {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	left := e.s.after(e.task.Timeout.Std() - time.Since(e.clock.Load().local))
	go func() {
		if wait(ctx, left) {
			end(errTimedOut)
		}
	}()
	return ctx, func() { end(nil) }
}

// atDesk runs the round with a desk for what it prints and reports.
func (e *execution) atDesk(ctx context.Context, args []string) (tdf.Result, error) {
	d, err := e.openDesk(ctx)
	if err != nil {
		return tdf.Result{ProgramSHA256: e.program.SHA256}, err
	}
	defer e.close(d)
	e.show(d)
	e.began = time.Now()
	ended, err := e.runRound(ctx, &Round{
		Task: e.task, Args: args, Dir: d.dir.Path(), Env: e.environment(d),
		Stdout: d.record.Stdout, Stderr: d.record.Stderr, execution: e,
	})
	if ended.Seconds == 0 {
		ended.Seconds = tdf.For(time.Since(e.began))
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if isLost(err) {
		e.show(nil)
		return tdf.Result{}, err
	}
	return e.collect(d, ended, err)
}

// show lets the reports see the desk, or no more.
func (e *execution) show(d *desk) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.desk = d
}

// cutShort tells the errors that end an execution from those that are its result.
func cutShort(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTimedOut), isLost(err), isUnfit(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// isLost: the task, or the worker's name, is somebody else's now.
func isLost(err error) bool {
	var found *tdf.StateError
	var taken *redisstate.NameTakenError
	return errors.As(err, &found) || errors.As(err, &taken)
}

func appendLine(text, line string) string {
	if line == "" {
		return text
	}
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}
