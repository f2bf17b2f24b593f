package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

type reporter interface {
	Execute(ctx context.Context, worker string, results ...tdf.Move) ([]redisstate.Outcome, error)
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
}

// longestPause between two tries to report.
const longestPause = 5 * time.Second

// report tells Redis how the execution ended: with its result, or cut short by cause. It returns
// whether all went well.
func (e *execution) report(told context.Context, r tdf.Result, cause error) bool {
	ctx, end := e.w.outlive(told, e.w.reportBound(), answerBound)
	defer end(nil)
	switch {
	case cause == nil:
		return e.reportExecuted(ctx, r)
	case errors.Is(cause, errTimedOut):
		m, _ := e.task.TimeOut()
		if e.apply(ctx, m.WithResult(r)) {
			e.log.Info("timed out", "timeout", e.task.Timeout)
		}
	case errors.Is(cause, errStopping):
		m, _ := e.task.Release(errStopping.Error())
		if e.apply(ctx, m) {
			e.log.Info("given back", "why", errStopping)
		}
	default:
		e.dropped(cause)
	}
	return false
}

func (e *execution) reportExecuted(ctx context.Context, r tdf.Result) bool {
	m, _ := e.task.Execute(e.claim, r)
	if !e.deliver(ctx, func() ([]redisstate.Outcome, error) { return e.w.store.Execute(ctx, e.w.name, m) }) {
		return false
	}
	if r.Exit == "" {
		e.log.Info("could not be run", "error", r.Error)
		return false
	}
	e.log.Info("executed", "exit", r.Exit, "seconds", r.Seconds)
	round := tdf.Round{Exit: r.Exit, Failed: r.Error != ""}
	return !round.HasFailed(e.task.FailOn)
}

// apply makes a move that ends the round without a result that counts.
func (e *execution) apply(ctx context.Context, m tdf.Move) bool {
	m.Claim = e.claim
	return e.deliver(ctx, func() ([]redisstate.Outcome, error) {
		return e.w.store.Apply(ctx, e.w.name, redisstate.Unit{Moves: []tdf.Move{m}})
	})
}

// deliver sends until Redis has taken it or says that it is not wanted any more. Outages are
// waited out by the store; other errors are given the time of a lease to be mended, since after
// that the task is somebody else's.
func (e *execution) deliver(ctx context.Context, send func() ([]redisstate.Outcome, error)) bool {
	began := time.Now()
	for pause := errorPause; ; pause = min(2*pause, longestPause) {
		outcomes, err := send()
		if err == nil {
			err = outcomes[0].Err
		}
		switch {
		case err == nil:
			return true
		case isLost(err), ctx.Err() != nil, time.Since(began) > e.w.cfg.Lease:
			e.dropped(err)
			return false
		}
		e.log.Error("the round could not be reported, trying again", "error", err)
		e.w.sleep(ctx, pause)
	}
}

// dropped: somebody else has decided over the task, or nobody could be told.
func (e *execution) dropped(why error) { e.log.Info("dropped", "why", why) }
