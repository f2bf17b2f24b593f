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

// A backlog is what Redis was told and has not taken. It is sent again after a pause, which grows.
type backlog struct {
	held  []verdict
	pause time.Duration
	again <-chan time.Time // nil: nothing is held
	told  time.Time        // when the log said so last
}

// report tells Redis how executions ended, all that did so meanwhile in one call, until ctx
// ends. Calls are broken off when bound ends, and what is held then is dropped.
func (s *session) report(ctx, bound context.Context) {
	defer context.AfterFunc(bound, s.reported.give)()
	var b backlog
	for {
		due := false
		select {
		case <-s.reported:
			due = bound.Err() != nil
		case <-b.again:
			due = true
		case <-ctx.Done():
			return
		}
		verdicts := s.verdicts()
		if due {
			verdicts, b.held = append(b.held, verdicts...), nil
		}
		refused, err := s.reportAll(bound, verdicts)
		s.putOff(&b, refused, err, due)
	}
}

// tellAgain is how long results may be held before the log says so once more.
const tellAgain = time.Minute

// putOff keeps what Redis has refused for another try.
func (s *session) putOff(b *backlog, refused []verdict, err error, tried bool) {
	b.held = append(b.held, refused...)
	if len(b.held) == 0 {
		*b = backlog{}
		return
	}
	if err != nil && time.Since(b.told) > tellAgain {
		s.log.Error("rounds could not be reported, trying again", "rounds", len(b.held), "error", err)
		b.told = time.Now()
	}
	if b.again == nil || tried {
		b.pause = min(max(2*b.pause, errorPause), longestPause)
		b.again = s.after(b.pause)
	}
}

// verdicts returns those of the executions that have ended since the last call. Nothing is reported of tasks that are
// another worker's.
func (s *session) verdicts() []verdict {
	s.mu.Lock()
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	var all []verdict
	for _, e := range ended {
		if v := e.verdict(e.result); v.move.Verb != "" {
			all = append(all, v)
			continue
		}
		e.dropped(e.cause)
		s.letGo(e, false)
	}
	return all
}

// reportAll returns what Redis has refused, and why.
func (s *session) reportAll(ctx context.Context, verdicts []verdict) (refused []verdict, err error) {
	var results, others []verdict
	for _, v := range verdicts {
		if v.move.Verb == tdf.VerbExecute {
			results = append(results, v)
		} else {
			others = append(others, v)
		}
	}
	refused, err = s.deliver(ctx, results, s.execute)
	more, otherErr := s.deliver(ctx, others, s.apply)
	return append(refused, more...), errors.Join(err, otherErr)
}

// A send reports moves, and returns what became of each, as far as the calls were made.
type send func(ctx context.Context, moves ...tdf.Move) ([]redisstate.Outcome, error)

func (s *session) execute(ctx context.Context, moves ...tdf.Move) ([]redisstate.Outcome, error) {
	return s.store.Execute(ctx, s.name, moves...)
}

func (s *session) apply(ctx context.Context, moves ...tdf.Move) ([]redisstate.Outcome, error) {
	units := make([]redisstate.Unit, len(moves))
	for i, m := range moves {
		units[i].Moves = []tdf.Move{m}
	}
	return s.store.Apply(ctx, s.name, units...)
}

// deliver sends verdicts in one call, or where Redis refuses that each by itself, so that one that it refuses holds up no
// other. Outages are waited out by the store. What Redis does not take is returned, and held; it is dropped only when
// Redis says that the task is somebody else's, or when ctx ends (docs/guarantees.md, "Every call may be sent twice").
func (s *session) deliver(ctx context.Context, rest []verdict, send send) (refused []verdict, why error) {
	try := func(v verdict, err error) {
		if err := s.answered(ctx, v, err, send); err != nil {
			refused, why = append(refused, v), err
		}
	}
	for most := len(rest); len(rest) > 0; {
		n := min(most, len(rest))
		outcomes, err := send(ctx, movesOf(rest[:n])...)
		for i, o := range outcomes {
			try(rest[i], o.Err)
		}
		rest = rest[len(outcomes):]
		switch {
		case err == nil:
		case ctx.Err() != nil:
			for _, v := range append(refused, rest...) {
				s.drop(v, err)
			}
			return nil, nil
		case n > 1:
			most = 1
		default:
			try(rest[0], err)
			rest = rest[1:]
		}
	}
	return refused, why
}

// answered acts on what Redis said of a verdict; an error: it has not taken it.
func (s *session) answered(ctx context.Context, v verdict, err error, send send) error {
	var unstorable *redisstate.UnstorableError
	switch {
	case err == nil:
		v.tell(ctx)
		s.letGo(v.e, v.well)
		return nil
	case isLost(err):
		s.drop(v, err)
		return nil
	case !errors.As(err, &unstorable):
		return err
	}
	less := v.e.unstored(unstorable)
	outcomes, err := send(ctx, less.move)
	if err == nil {
		err = outcomes[0].Err
	}
	if err != nil && !isLost(err) {
		return err
	}
	return s.answered(ctx, less, err, send)
}

// A verdict is what a worker reports of an execution.
type verdict struct {
	e    *execution
	move tdf.Move // no verb: nothing
	well bool
	tell func(ctx context.Context) // when Redis has taken it
}

// verdict says what is to be reported of an execution that has ended with a result.
func (e *execution) verdict(r tdf.Result) verdict {
	v := verdict{e: e}
	r.ClearLive = e.told
	switch {
	case e.cause == nil:
		return e.executed(r)
	case errors.Is(e.cause, errTimedOut):
		v.move, _ = e.task.TimeOut()
		if r.Error == "" {
			r.Error = "timed out: it ran for longer than " + e.task.Timeout.String() + " s, and printed nothing to stderr"
		}
		v.move = v.move.WithResult(r)
		v.tell = func(context.Context) { e.log.Info("timed out", "timeout", e.task.Timeout) }
	case isGivenBack(e.cause):
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
		v.tell = func(ctx context.Context) { e.wasRefused(ctx, r.Exit) }
		return v
	}
	round := tdf.Round{Exit: r.Exit, HasError: r.Error+r.Reason != ""}
	v.well = !round.HasFailed(e.task.FailOn)
	v.tell = func(ctx context.Context) {
		if v.well {
			e.s.avoid.succeeded(e.task.Program)
		} else {
			e.hasFailed(ctx, "run.sh ended with "+r.Exit)
		}
		e.log.Info("executed", "exit", r.Exit, "seconds", r.Seconds)
	}
	return v
}

// wasRefused tells of a round that could not be run, or ran and left what cannot be taken.
func (e *execution) wasRefused(ctx context.Context, exit string) {
	switch {
	case isGivenBack(e.cause): // and there is no round after it
	case isUnfit(e.cause):
		e.s.avoid.unfit(e.task.Program, e.why)
	case exit != "":
		e.hasFailed(ctx, e.why)
		e.log.Info("executed, and what it left is refused", "exit", exit, "error", short(e.why))
		return
	case e.sound:
		e.s.avoid.unstarted(e.task.Program, e.why)
	}
	e.log.Info("could not be run", "error", short(e.why))
}

// unstored is the verdict without what Redis refuses to store: the round has failed, and its error says why.
func (e *execution) unstored(why error) verdict {
	r := e.result
	e.why = fmt.Sprintf("the round's result is lost: %v", why)
	return e.verdict(tdf.Result{
		Exit: r.Exit, Refused: true, Reason: e.why, Started: r.Started, ProgramSHA256: r.ProgramSHA256,
		OutputBytes: r.OutputBytes, ErrorBytes: r.ErrorBytes, Seconds: r.Seconds, CPUSeconds: r.CPUSeconds, MaxRSS: r.MaxRSS,
	})
}

// givenBack: after the last round there is none to give the task back for; this one has failed then.
func (e *execution) givenBack(r tdf.Result) verdict {
	why := e.cause
	m, err := e.task.Release(why.Error())
	if errors.Is(err, tdf.ErrLastRound) {
		e.why = fmt.Sprintf("%v, and the task cannot be given back: %v", why, err)
		r.Refused, r.Reason = true, e.why
		return e.executed(r)
	}
	m.Claim = e.claim
	return verdict{e: e, move: m, tell: func(context.Context) { e.log.Info("given back", "why", why) }}
}

// unfit gives the task back; when that was done too often, its round has failed.
func (e *execution) unfit(r tdf.Result) verdict {
	e.why = e.cause.Error()
	m, ok := e.task.ReleaseUnfit(short(e.why))
	if !ok {
		r.Refused, r.Reason = true, e.why
		return e.executed(r)
	}
	m.Claim = e.claim
	return verdict{e: e, move: m, tell: func(context.Context) {
		e.s.avoid.unfit(e.task.Program, e.why)
		e.log.Warn("given back: it cannot be run here", "why", short(e.why))
	}}
}

func movesOf(all []verdict) []tdf.Move {
	moves := make([]tdf.Move, len(all))
	for i, v := range all {
		moves[i] = v.move
	}
	return moves
}

// drop lets go of an execution whose result nobody wants, or nobody could be told.
func (s *session) drop(v verdict, why error) {
	v.e.dropped(why)
	s.letGo(v.e, false)
}

func (e *execution) dropped(why error) { e.log.Info("dropped", "why", why) }
