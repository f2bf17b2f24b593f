package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/worker/outcome"
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
	d := delivery{e: e}
	r.ClearLive = e.reportedLive
	var lack *shortageError
	switch {
	case e.cause == nil:
		return e.executed(r)
	case errors.Is(e.cause, errTimedOut):
		d.stored = e.read
		d.move, _ = e.decidesOn.TimeOut()
		if r.Error == "" {
			r.Error = "timed out: it ran for longer than " + e.task.Timeout.String() +
				" s, and printed nothing to stderr"
		}
		d.move = d.move.WithResult(r)
		d.accepted = func(context.Context) { e.log.Info("timed out", "timeout", e.task.Timeout) }
	case isReleased(e.cause):
		return e.released(r)
	case isLater(e.cause):
		return e.releasedForLater(r)
	case errors.As(e.cause, &lack):
		return e.short(r, lack)
	case isUnfit(e.cause):
		return e.unfit(r)
	}
	d.move.Claim = e.claim
	return d
}

func (e *execution) executed(r tdf.Result) delivery {
	d := delivery{e: e, stored: e.read}
	d.move, _ = e.task.Execute(e.claim, r)
	if r.Refused {
		exit := r.Exit
		d.accepted = func(ctx context.Context) { e.logRefused(ctx, exit) }
		return d
	}
	d.success = !r.HasFailed(e.task.FailOn)
	d.opens = len(e.following) > 0 && outcome.Opens(e.task, &r)
	exit, seconds, failure := r.Exit, r.Seconds, "" // without r, so that the function keeps less memory
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
	stderr = strings.TrimSpace(stderr[max(0, len(stderr)-outcome.MaxShort):])
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
		e.log.Info("executed, but its result is refused", "exit", exit, "error", outcome.Short(e.reason))
		return
	case e.sound:
		e.s.breakers.couldNotStart(e.task.Program, e.reason)
	}
	e.log.Info("could not be run", "error", outcome.Short(e.reason))
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

// released returns a report that releases the task. In its last round, a task cannot be released, so the round fails.
func (e *execution) released(r tdf.Result) delivery {
	m, err := e.task.Release(e.cause.Error())
	if errors.Is(err, tdf.ErrLastRound) {
		return e.notReleased(r, err)
	}
	m.Claim = e.claim
	return delivery{e: e, move: m, accepted: func(context.Context) { e.log.Info("released", "reason", e.cause) }}
}

// releasedForLater returns a report that releases the task with the delay that its handler asked for.
func (e *execution) releasedForLater(r tdf.Result) delivery {
	var later *LaterError
	errors.As(e.cause, &later)
	m, err := e.task.ReleaseLater(tdf.For(later.After), outcome.Short(e.cause.Error()))
	if errors.Is(err, tdf.ErrLastRound) {
		return e.notReleased(r, err)
	}
	m.Claim = e.claim
	return delivery{e: e, move: m, accepted: func(context.Context) {
		e.log.Info("released for later", "delay", later.After, "reason", outcome.Short(e.cause.Error()))
	}}
}

func (e *execution) notReleased(r tdf.Result, err error) delivery {
	r = outcome.NotReleased(r, e.cause.Error(), err)
	e.reason = r.Reason
	return e.executed(r)
}

// unfit returns a report that releases the task because this host cannot run it. After too many such releases, the
// round fails instead.
func (e *execution) unfit(r tdf.Result) delivery {
	e.reason = e.cause.Error()
	m, ok := e.task.ReleaseUnfit(outcome.Short(e.reason))
	if !ok {
		r.Refused, r.Reason = true, e.reason
		return e.executed(r)
	}
	m.Claim = e.claim
	return delivery{e: e, move: m, accepted: func(context.Context) {
		e.s.breakers.unfit(e.task.Program, e.reason)
		e.log.Warn("released: this host cannot run it", "reason", outcome.Short(e.reason))
	}}
}

func movesOf(all []delivery) []tdf.Move {
	moves := make([]tdf.Move, len(all))
	for i, d := range all {
		moves[i] = d.move
	}
	return moves
}
