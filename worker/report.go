package worker

import (
	"context"
	"errors"
	"fmt"
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

// report tells Redis how executions ended, all that did so meanwhile in one call, until ctx
// ends. Calls are broken off when bound ends.
func (s *session) report(ctx, bound context.Context) {
	for wait(ctx, s.reported) {
		s.mu.Lock()
		ended := s.ended
		s.ended = nil
		s.mu.Unlock()
		s.reportAll(bound, ended)
	}
}

func (s *session) reportAll(ctx context.Context, ended []*execution) {
	var results, others []verdict
	for _, e := range ended {
		switch v := e.verdict(); {
		case v.move.Verb == "":
			e.dropped(e.cause)
			s.letGo(e, false)
		case v.move.Verb == tdf.VerbExecute:
			results = append(results, v)
		default:
			others = append(others, v)
		}
	}
	s.deliver(ctx, results, func(moves []tdf.Move) ([]redisstate.Outcome, error) {
		return s.store.Execute(ctx, s.name, moves...)
	})
	s.deliver(ctx, others, func(moves []tdf.Move) ([]redisstate.Outcome, error) {
		units := make([]redisstate.Unit, len(moves))
		for i, m := range moves {
			units[i].Moves = []tdf.Move{m}
		}
		return s.store.Apply(ctx, s.name, units...)
	})
}

// A verdict is what a worker reports of an execution.
type verdict struct {
	e    *execution
	move tdf.Move // no verb: nothing
	well bool
	tell func() // when Redis has taken it
}

func (e *execution) verdict() verdict {
	v := verdict{e: e}
	r := e.result
	r.Told = e.told
	switch {
	case e.cause == nil:
		return e.executed(r)
	case errors.Is(e.cause, errTimedOut):
		v.move, _ = e.task.TimeOut()
		if r.Error == "" {
			r.Error = "timed out: it ran for longer than " + e.task.Timeout.String() + " s, and printed nothing to stderr"
		}
		v.move = v.move.WithResult(r)
		v.tell = func() { e.log.Info("timed out", "timeout", e.task.Timeout) }
	case errors.Is(e.cause, errStopping):
		return e.givenBack(r)
	case isUnfit(e.cause):
		return e.unfit(r)
	}
	v.move.Claim = e.claim
	return v
}

func (e *execution) executed(r tdf.Result) verdict {
	v := verdict{e: e}
	v.move, _ = e.task.Execute(e.claim, r)
	if r.Refused {
		v.tell = func() {
			if isUnfit(e.cause) {
				e.s.avoid.unfit(e.task.Program, e.why)
			} else {
				e.s.avoid.failed(e.task.Program, e.why)
			}
			e.log.Info("could not be run", "error", short(e.why))
		}
		return v
	}
	round := tdf.Round{Exit: r.Exit, Failed: r.Error+r.Why != ""}
	v.well = !round.HasFailed(e.task.FailOn)
	v.tell = func() {
		if v.well {
			e.s.avoid.succeeded(e.task.Program)
		} else {
			e.s.avoid.failed(e.task.Program, "run.sh ended with "+r.Exit)
		}
		e.log.Info("executed", "exit", r.Exit, "seconds", r.Seconds)
	}
	return v
}

// givenBack: after the last round there is none to give the task back for; this one has failed then.
func (e *execution) givenBack(r tdf.Result) verdict {
	m, err := e.task.Release(errStopping.Error())
	if errors.Is(err, tdf.ErrLastRound) {
		e.why = fmt.Sprintf("%v, and the task cannot be given back: %v", errStopping, err)
		r.Refused, r.Why = true, e.why
		return e.executed(r)
	}
	m.Claim = e.claim
	return verdict{e: e, move: m, tell: func() { e.log.Info("given back", "why", errStopping) }}
}

// unfit gives the task back; when that was done too often, its round has failed.
func (e *execution) unfit(r tdf.Result) verdict {
	e.why = e.cause.Error()
	m, ok := e.task.ReleaseUnfit(short(e.why))
	if !ok {
		r.Refused, r.Why = true, e.why
		return e.executed(r)
	}
	m.Claim = e.claim
	return verdict{e: e, move: m, tell: func() {
		e.s.avoid.unfit(e.task.Program, e.why)
		e.log.Warn("given back: it cannot be run here", "why", short(e.why))
	}}
}

// deliver sends until Redis has taken each or says that it is not wanted any more. Outages are
// waited out by the store; other errors are given the time of a lease to be mended, since after
// that the tasks are somebody else's. What Redis does not take holds up no other for long.
func (s *session) deliver(ctx context.Context, rest []verdict, send func([]tdf.Move) ([]redisstate.Outcome, error)) {
	began := time.Now()
	most := len(rest)
	for pause := errorPause; len(rest) > 0; {
		outcomes, err := send(movesOf(rest[:min(most, len(rest))]))
		for i, o := range outcomes {
			s.settled(rest[i], o.Err)
		}
		rest = rest[len(outcomes):]
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil, time.Since(began) > s.cfg.Lease:
			for _, v := range rest {
				s.settled(v, err)
			}
			return
		}
		s.log.Error("rounds could not be reported, trying again", "rounds", len(rest), "error", err)
		rest, most = append(rest[1:], rest[0]), 1
		s.sleep(ctx, pause)
		pause = min(2*pause, longestPause)
	}
}

func movesOf(all []verdict) []tdf.Move {
	moves := make([]tdf.Move, len(all))
	for i, v := range all {
		moves[i] = v.move
	}
	return moves
}

// settled ends an execution that was reported, or that nobody wants.
func (s *session) settled(v verdict, err error) {
	if err != nil {
		v.e.dropped(err)
		s.letGo(v.e, false)
		return
	}
	v.tell()
	s.letGo(v.e, v.well)
}

// dropped: somebody else has decided over the task, or nobody could be told.
func (e *execution) dropped(why error) { e.log.Info("dropped", "why", why) }
