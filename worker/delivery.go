package worker

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
)

// conclude makes the report of an execution that has ended. It reports whether there is anything to report.
func (e *execution) conclude() bool {
	e.result.ClearLive = e.reportedLive
	e.report = broker.Delivery{
		Task: e.task, Ending: broker.Ending{Claim: e.claim, Result: e.result}, Following: e.following,
		Answered: e.answered,
	}
	if e.cause == nil {
		e.report.Unstarted = e.sound && e.result.Exit == ""
		return e.report.Decide()
	}
	var known bool
	if e.report.Way, known = e.way(); !known {
		return false
	}
	e.report.Reason, e.report.Delay = e.cause.Error(), delayOf(e.cause)
	return e.report.Decide()
}

// way returns how a round ended that was cut short. It returns false if the task no longer belongs to this worker.
func (e *execution) way() (broker.Way, bool) {
	switch {
	case errors.Is(e.cause, errTimedOut):
		return broker.TimedOut, true
	case errors.Is(e.cause, errGivenBack):
		return broker.Unclaimed, true
	case isReleased(e.cause), isShortage(e.cause):
		return broker.Released, true
	case isLater(e.cause):
		return broker.Later, true
	case isUnfit(e.cause):
		return broker.Unfit, true
	}
	return 0, false
}

// delayOf returns the delay of a handler that puts its task off.
func delayOf(err error) task.Seconds {
	if later := new(LaterError); errors.As(err, &later) {
		return task.For(later.After)
	}
	return 0
}

// reportAccepted logs an accepted report.
func (e *execution) reportAccepted(ctx context.Context) {
	e.stored = e.read && !e.report.ResultLost
	switch e.report.Way {
	case broker.Done:
		e.executed(ctx)
	case broker.TimedOut:
		e.log.Info("timed out", "timeout", e.task.Timeout)
	default:
		e.stored = false
		e.givenBack(e.report.Way)
	}
}

// givenBack logs that the task was given back.
func (e *execution) givenBack(way broker.Way) {
	reason := broker.Short(e.cause.Error())
	switch {
	case way == broker.Unclaimed:
		e.log.Debug("unclaimed")
	case isShortage(e.cause):
		e.log.Warn("released: the worker lacks what the round needs", "reason", reason)
	case way == broker.Unfit:
		e.s.unstarted.couldNotStart(e.task.Program)
		e.log.Warn("released: this host cannot run it", "reason", reason)
	case way == broker.Later:
		e.log.Info("released for later", "delay", delayOf(e.cause).Std(), "reason", reason)
	default:
		e.log.Info("released", "reason", e.cause)
	}
}

// executed logs a round with a result.
func (e *execution) executed(ctx context.Context) {
	r := &e.report.Result
	if r.Refused {
		e.logRefused(ctx)
		return
	}
	e.s.unstarted.started(e.task.Program)
	e.log.Info("executed", "exit", r.Exit, "seconds", r.Seconds)
}

// logRefused logs a round that could not be run, or whose result is refused.
func (e *execution) logRefused(ctx context.Context) {
	exit, reason := e.report.Result.Exit, e.reason
	if reason == "" || e.report.ResultLost {
		reason = e.report.Result.Reason
	}
	switch {
	// A task cannot be released in its last round; the program is not at fault.
	case isReleased(e.cause), isLater(e.cause), isShortage(e.cause):
	case exit != "":
		e.s.unstarted.started(e.task.Program)
		e.log.Info("executed, but its result is refused", "exit", exit, "error", broker.Short(reason))
		return
	case e.sound, isUnfit(e.cause):
		e.s.unstarted.couldNotStart(e.task.Program)
	}
	e.log.Info("could not be run", "error", broker.Short(reason))
}
