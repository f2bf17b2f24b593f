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
	w     *Worker
	task  *tdf.Task
	claim string
	wrong error // what makes no sense about the task
	log   *slog.Logger
	clock atomic.Pointer[reading]
}

// A reading of Redis's clock says when the task's timeout began to count: by that clock, and by
// ours, which measures how long it is ago.
type reading struct {
	redis tdf.Time
	local time.Time
}

// execute runs a claimed task and reports how it ended. It returns whether all went well.
func (w *Worker) execute(told context.Context, c redisstate.Claim, now tdf.Time, received time.Time) bool {
	e := &execution{
		w: w, task: c.Task, claim: c.ID, wrong: c.Invalid,
		log: w.log.With("task", c.Task.ID, "round", c.Task.Round, "program", c.Task.Program),
	}
	e.clock.Store(&reading{now, received})
	if told.Err() != nil {
		return e.report(told, tdf.Result{}, errStopping)
	}
	alive, end := w.outlive(told, w.cfg.Grace, 0)
	defer end(nil)
	defer e.keepLease(told, end)()
	result, cause := e.run(alive)
	return e.report(told, result, cause)
}

// keepLease renews the lease, also while a result waits for Redis, until the function that it
// returns is called.
func (e *execution) keepLease(told context.Context, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(told))
	var keeper sync.WaitGroup
	keeper.Go(func() { e.keep(ctx, end) })
	return func() {
		cancel()
		keeper.Wait()
	}
}

// run returns the result of the round, or, with what there is of it, why it was cut short.
func (e *execution) run(ctx context.Context) (tdf.Result, error) {
	result, err := e.fetchAndRun(ctx)
	if cause := cutShort(ctx, err); cause != nil {
		return result, cause
	}
	if err != nil {
		result.Error = err.Error()
	}
	c := e.clock.Load()
	result.Started, result.Seconds = c.redis, tdf.For(time.Since(c.local))
	return result, nil
}

// fetchAndRun returns an error where the program could not be run, or not to its end.
func (e *execution) fetchAndRun(ctx context.Context) (tdf.Result, error) {
	if e.wrong != nil {
		return tdf.Result{}, e.wrong
	}
	args, err := tdf.SplitInput(e.task.Input)
	if err != nil {
		return tdf.Result{}, err
	}
	program, err := e.program(ctx)
	if err != nil {
		return tdf.Result{}, err
	}
	return e.runProgram(ctx, program, args)
}

// cutShort tells the errors that end an execution from those that are its result.
func cutShort(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTimedOut), isLost(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

func isLost(err error) bool {
	var found *tdf.StateError
	return errors.As(err, &found)
}

// runProgram runs ./run.sh to its end, or to that of ctx or the timeout: then the error says so,
// and the result has what was printed by then.
func (e *execution) runProgram(ctx context.Context, program fetch.Program, args []string) (tdf.Result, error) {
	result := tdf.Result{ProgramSHA256: program.SHA256}
	files, err := e.openOutputs()
	if err != nil {
		return result, err
	}
	defer files.close()
	p, err := launch(ctx, program.Dir, args, e.environment(), files)
	if err != nil {
		return result, err
	}
	ended := e.await(ctx, p)
	result.Exit = p.exit()
	result.Output, result.Error, err = files.read(e.w.mostOutput(), e.w.name)
	return result, errors.Join(ended, err)
}

// await returns when the program and its process group have ended: nil when they did so by
// themselves, else why they were made to.
func (e *execution) await(ctx context.Context, p *process) error {
	var why error
	select {
	case <-p.done:
		return nil
	case <-e.w.after(e.timeLeft()):
		why = errTimedOut
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	e.log.Debug("ending the program", "why", why)
	p.end(e.w.after(e.w.cfg.KillGrace), e.w.haste.Done())
	return why
}

func (e *execution) timeLeft() time.Duration {
	return e.task.Timeout.Std() - time.Since(e.clock.Load().local)
}
