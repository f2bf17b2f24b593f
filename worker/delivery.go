package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
)

// A delivery is the report of an execution that has ended.
type delivery struct {
	e        *execution
	move     tdf.Move // has no verb if there is nothing to report
	success  bool
	stored   bool                      // the report contains the round's output
	opens    bool                      // the report opens tasks
	open     []tdf.Properties          // these tasks, once complete has completed them
	refused  bool                      // Redis has refused the report at least once
	accepted func(ctx context.Context) // called when Redis has accepted the report
}

// delivery returns the report of an execution that has ended with the result r.
func (e *execution) delivery(r tdf.Result) delivery {
	end := broker.Ending{Claim: e.claim, Result: r}
	if e.cause != nil {
		var known bool
		if end.Way, known = e.way(); !known {
			return delivery{e: e, move: tdf.Move{Claim: e.claim}} // there is nothing to report
		}
		end.Reason, end.Delay = e.cause.Error(), delayOf(e.cause)
	}
	return e.report(end)
}

// way returns how a round ended that was cut short. It returns false if the task no longer belongs to this worker.
func (e *execution) way() (broker.Way, bool) {
	var lack *shortageError
	switch {
	case errors.Is(e.cause, errTimedOut):
		return broker.TimedOut, true
	case isReleased(e.cause):
		return broker.Released, true
	case isLater(e.cause):
		return broker.Later, true
	case errors.As(e.cause, &lack) && !lack.started:
		return broker.Released, true
	case lack != nil, isUnfit(e.cause):
		return broker.Unfit, true
	}
	return 0, false
}

// delayOf returns the delay of a handler that puts its task off.
func delayOf(err error) tdf.Seconds {
	if later := new(LaterError); errors.As(err, &later) {
		return tdf.For(later.After)
	}
	return 0
}

// report returns the report of an ending.
func (e *execution) report(end broker.Ending) delivery {
	d := delivery{e: e}
	end.Result.ClearLive = e.reportedLive
	way := end.Way
	d.move = end.Move(e.decidesOn)
	switch {
	case end.Way == broker.Done:
		if way != broker.Done { // the task cannot be given back
			e.reason = end.Result.Reason
		}
		return e.executed(d, &end)
	case end.Way == broker.TimedOut:
		d.stored = e.read
		d.accepted = func(context.Context) { e.log.Info("timed out", "timeout", e.task.Timeout) }
	default:
		e.reason = end.Reason
		d.accepted = func(context.Context) { e.givenBack(way) }
	}
	return d
}

// givenBack logs that the task was given back.
func (e *execution) givenBack(way broker.Way) {
	reason := broker.Short(e.cause.Error())
	switch {
	case isShortage(e.cause):
		e.log.Warn("released: the worker lacks what the round needs", "reason", reason)
	case way == broker.Unfit:
		e.s.breakers.unfit(e.task.Program, e.reason)
		e.log.Warn("released: this host cannot run it", "reason", reason)
	case way == broker.Later:
		e.log.Info("released for later", "delay", delayOf(e.cause).Std(), "reason", reason)
	default:
		e.log.Info("released", "reason", e.cause)
	}
}

// executed completes the report of a round with a result.
func (e *execution) executed(d delivery, end *broker.Ending) delivery {
	d.stored = e.read
	r := &end.Result
	exit, seconds, failure := r.Exit, r.Seconds, "" // without r, so that the function keeps less memory
	if r.Refused {
		d.accepted = func(ctx context.Context) { e.logRefused(ctx, exit) }
		return d
	}
	d.success = !r.HasFailed(e.task.FailOn)
	d.opens = len(e.following) > 0 && end.Opens(e.task)
	if !d.success {
		failure = r.Subject() + " ended with " + r.Exit + lastError(r.Error)
	}
	d.accepted = func(ctx context.Context) {
		if failure == "" {
			e.s.breakers.succeeded(e.task.Program)
		} else {
			e.countFailure(ctx, failure)
		}
		e.log.Info("executed", slices.Concat([]any{"exit", exit}, e.directoryAttr(), []any{"seconds", seconds})...)
	}
	return d
}

// directoryAttr says in the log that other rounds may have used the program's directory at the same time, although
// the program did not ask for that.
func (e *execution) directoryAttr() []any {
	if !e.shares {
		return nil
	}
	return []any{"directory", "shared"}
}

// lastError returns the last line of stderr, or an empty text if stderr is empty.
func lastError(stderr string) string {
	stderr = strings.TrimSpace(stderr[max(0, len(stderr)-broker.MaxShort):])
	if stderr == "" {
		return ""
	}
	return ": " + stderr[strings.LastIndexByte(stderr, '\n')+1:]
}

// logRefused logs a round that could not be run, or whose result is refused, and counts it for the circuit breaker.
func (e *execution) logRefused(ctx context.Context, exit string) {
	switch {
	// A task cannot be released in its last round; the program is not at fault.
	case isReleased(e.cause), isLater(e.cause), isShortage(e.cause):
	case isUnfit(e.cause):
		e.s.breakers.unfit(e.task.Program, e.reason)
	case exit != "":
		e.countFailure(ctx, e.reason)
		e.log.Info("executed, but its result is refused", "exit", exit, "error", broker.Short(e.reason))
		return
	case e.sound:
		e.s.breakers.couldNotStart(e.task.Program, e.reason)
	}
	e.log.Info("could not be run", "error", broker.Short(e.reason))
}

// withoutResult returns the report without the result, which Redis cannot store. The round fails, and its error says
// why.
func (e *execution) withoutResult(err error) delivery {
	r := e.result
	e.reason = fmt.Sprintf("the round's result is lost: %v", err)
	d := e.delivery(tdf.Result{
		Exit: r.Exit, Refused: true, Reason: e.reason, Permanent: r.Permanent, Started: r.Started,
		ProgramSHA256: r.ProgramSHA256,
		OutputBytes:   r.OutputBytes, ErrorBytes: r.ErrorBytes, Seconds: r.Seconds, CPUSeconds: r.CPUSeconds,
		MaxRSS: r.MaxRSS,
	})
	d.stored = false
	return d
}

func movesOf(all []delivery) []tdf.Move {
	moves := make([]tdf.Move, len(all))
	for i, d := range all {
		moves[i] = d.move
	}
	return moves
}
