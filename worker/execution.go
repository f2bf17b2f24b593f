package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/record"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
	"github.com/tdf-framework/tdf/redisstate"
)

// errTimedOut ends a program that ran for longer than its task's timeout.
var errTimedOut = errors.New("the task's timeout is over")

// An execution is one claim of a task, from Redis's answer to the claim until Redis has accepted the report.
type execution struct {
	s       *supervisor
	task    *task.Task
	claim   string
	writer  string // the killed worker whose output this worker keeps; "" for what this worker runs
	invalid error  // why the task is invalid; nil if it is valid
	data    []byte // the input, if it has any bytes; otherwise nil

	share   resources.Share // of the worker's resources; nothing if it offers none
	noShare bool            // the worker has not enough free for the task

	slot int // at least 1; unique among the executions that run or pause; 0 while a prefetched task waits, and after
	// another one got the slot
	log *slog.Logger

	clock atomic.Pointer[reading]
	// when the worker sent the claim or the last accepted renewal; the lease counts from then
	renewed atomic.Pointer[time.Time]
	ctx     context.Context         // ends when the program must end
	end     context.CancelCauseFunc // ends ctx
	began   time.Time               // when the program began
	secrets *secrets.Secrets        // the program's secrets; nil if there are none
	held    bool                    // holdTimeout has stopped the task's timeout
	dropped bool                    // Redis has not accepted a report of the round

	mu           sync.Mutex
	roundIO      *roundIO // nil unless the round runs
	reportedLive bool     // Redis stores properties of the round that are valid only while the round runs

	// the number in the names of the output files; above 1 if earlier executions of this round left files
	// (docs/programs.md); 0 while no file has a name
	number     int64
	programDir atomic.Pointer[string] // the name of the program's directory; nil until the program is there
	followed   atomic.Bool            // whether a user watches the round
	record     *record.Record         // the output files; nil if the round did not get that far
	dir        *rounddir.Dir          // the round's directory, if it must be removed after the report
	following  []broker.Following     // the tasks that the round opens, if it succeeds
	read       bool                   // the result has the round's output
	stored     bool                   // Redis has accepted a report with the round's output
	result     rules.Result           // the round's result, once the round has ended
	cause      error                  // why the round was cut short; nil if it was not
	sound      bool                   // the task is valid, so the program is at fault if the round fails
	reason     string                 // why the round counts as failed; "" if only the program itself reports a failure

	report     broker.Delivery // once the round has ended
	mustReport bool            // Redis has not accepted the report yet
}

// A reading is the time at which the task's timeout began to count, by Redis's clock and by this machine's clock.
type reading struct {
	redis task.Time
	local time.Time
}

// newExecution returns the execution of a claim. The executions of one answer share the clock and the time from which
// the leases count.
func (s *supervisor) newExecution(c redisstate.Claim, clock *reading, leased *time.Time) *execution {
	e := &execution{
		s: s, task: c.Task, claim: c.ID, invalid: c.Invalid,
		log: slog.New(s.log.Handler().WithAttrs([]slog.Attr{
			slog.Int64("task", c.Task.ID), slog.Int("round", c.Task.Round), slog.String("program", c.Task.Program),
		})),
	}
	e.clock.Store(clock)
	e.renewed.Store(leased)
	return e
}

// run runs the round until it ends, and sets the execution's result. If the round was cut short, run also sets the
// cause.
func (e *execution) run(ctx context.Context) {
	result, err := e.attempt(ctx)
	e.cause = cutShort(ctx, asShortage(err))
	if err != nil && e.cause == nil {
		e.reason = err.Error()
		result.Refused, result.Reason = true, rules.AppendLine(e.reason, result.Reason)
	}
	c := e.clock.Load()
	if e.began.IsZero() {
		e.began = c.local
	}
	result.Started = c.redis.Add(task.For(e.began.Sub(c.local)))
	if result.Seconds == 0 {
		result.Seconds = task.For(time.Since(e.began))
	}
	e.result = result
}

// attempt runs the round. It returns an error if the program could not be run, if the program was ended early, or if
// the round's result is refused.
func (e *execution) attempt(ctx context.Context) (rules.Result, error) {
	if e.invalid != nil {
		return rules.Result{}, e.invalid
	}
	args, data, err := e.task.Arguments()
	if err != nil {
		return rules.Result{}, err
	}
	e.sound = true
	r := e.newRound(args, data)
	runner, err := e.s.preparer.Prepare(ctx, r)
	if err != nil {
		return rules.Result{}, err
	}
	if e.held {
		if err := e.begin(ctx); err != nil {
			return rules.Result{}, err
		}
	}
	ctx, end := e.withTimeout(ctx)
	defer end()
	return e.runWithIO(ctx, runner, r)
}

// withTimeout returns a context that ends with errTimedOut when the task's timeout is over.
func (e *execution) withTimeout(ctx context.Context) (context.Context, func()) {
	if e.task.Timeout == task.Forever {
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

// runWithIO runs the round with its files, and collects them afterwards.
func (e *execution) runWithIO(ctx context.Context, runner Runner, r *Round) (rules.Result, error) {
	x, before, err := e.openIO(ctx, r)
	if err != nil {
		return rules.Result{ProgramSHA256: r.ProgramSHA256}, err
	}
	defer e.close(x)
	e.setIO(x)
	e.began = time.Now()
	r.Stdout, r.Stderr = x.record.Writers()
	r.files = x
	r.Checkpoint, r.LastError, r.Deadline = before.Checkpoint, before.LastError, e.deadline()
	var ended Ended
	if e.s.inProcess() {
		ended, err = e.runApart(ctx, runner, r, x.secrets.Mask)
	} else {
		ended, err = runner.Run(ctx, r)
	}
	if ended.Elapsed == 0 {
		ended.Elapsed = time.Since(e.began)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && e.s.inProcess() {
		e.holdEnd(0)
	}
	if err == nil && e.s.endedWithWorker(ended.Exit) {
		err = errStopping
	}
	e.endDir(x)
	if isLost(err) {
		e.setIO(nil)
		return rules.Result{}, err
	}
	return e.collect(x, r, ended, err)
}

// setIO makes the renewals report the files of x. If x is nil, the renewals report no files.
func (e *execution) setIO(x *roundIO) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.roundIO = x
}

// cutShort returns why the execution ends without a result of its own. It returns nil if the round ended by itself, or
// if err makes the round fail.
func cutShort(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTimedOut), errors.Is(err, errStopping), isLost(err), isUnfit(err), isLater(err),
		isShortage(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// A lostError says that an execution's task, or the worker's name, no longer belongs to this worker. It has a type of
// its own because a handler's error may contain a *[tdf.StateError] about another task.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

func isLost(err error) bool { return err != nil && errors.As(err, new(*lostError)) }
