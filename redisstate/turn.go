package redisstate

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Turn is one turn of a worker: it reports rounds that have ended as [Store.Execute] does, and claims tasks as
// [Store.Claim] does. Without results, it only claims. If r.Most and r.Prefetch are 0, it only reports.
//
// If the results have one form, and no replicas must confirm them, both calls travel together. So a worker that runs
// many short rounds waits for Redis once, not twice. A claim that Redis refuses, for example because Redis is full,
// does not delay the results: the error claimErr is the claim's own. Turn then leaves overdue tasks to the next claim.
// When the context claiming has ended, Turn no longer sends the claim, but still sends the results.
func (s *Store) Turn(
	ctx, claiming context.Context, r ClaimParams, results ...rules.Move,
) (outcomes []Outcome, c ClaimResult, err, claimErr error) {
	switch {
	case len(results) == 0 && r.Most+r.Prefetch == 0:
		return nil, c, nil, nil
	case len(results) == 0:
		c, claimErr = s.Claim(claiming, r)
		return nil, c, nil, claimErr
	case r.Most+r.Prefetch == 0:
		outcomes, err = s.Execute(ctx, r.Worker, results...)
		return outcomes, c, err, nil
	}
	units := unitsOf(results)
	n, oneForm := nextCall(units)
	if err := s.Conn.Ready(ctx); err != nil || !oneForm || s.claimsMustWait(ctx) ||
		s.Conn.Confirms(ctx) || min(n, unitBatch(units), s.pace.next()) < len(units) {
		outcomes, err := s.apply(ctx, r.Worker, units, false)
		if err != nil {
			return outcomes, c, err, nil
		}
		c, _, claimErr = s.claim(claiming, r)
		return outcomes, c, nil, claimErr
	}
	return s.turn(ctx, claiming, r, units)
}

// turn sends a call of move.lua and a call of claim.lua together. It returns the answers to both calls.
func (s *Store) turn(ctx, claiming context.Context, r ClaimParams, units []Unit) (done []Outcome, c ClaimResult, err,
	claimErr error,
) {
	e := &conn.Args{All: make([]any, 0, 64+16*len(units))}
	e.Add("", "0")
	s.encodeMove(e, r.Worker, units)
	move := scriptCall{lua.Move, s.moveKeys(ctx, &units[0].Moves[0]), e.All, outcomesOf(len(units))}
	slot, sequence := s.Conn.Calls.Take()
	defer s.Conn.Calls.GiveBack(slot)
	args, queues := s.claimArgs(r, true)
	claim := scriptCall{lua.Claim, s.claimKeys(r.offer()), args(slot, sequence), claimForm(len(queues))}
	sent, took, moved, claimed, err, claimErr := s.runBoth(ctx, claiming, move, claim)
	if claimErr = conn.Failed(claimTasks, claimErr); claimErr == nil {
		s.link.observe(replySize(claimed)+sizeOf(units), took)
		c, _ = s.readClaimed(r.Worker, queues, claimed)
		claimErr = s.learnRequirements(claiming, r.offer(), claimed, &c)
		c.More = c.More || c.Stale
		s.countClaims(&c)
		c.Sent = sent
	}
	if err != nil {
		return nil, c, conn.Failed("", err), claimErr
	}
	done, err = s.rest(ctx, r.Worker, units, moved)
	return done, c, err, claimErr
}

// rest returns the outcomes in the answer of move.lua. If Redis had no time for all units, the function rest carries
// out the remaining units.
func (s *Store) rest(ctx context.Context, who string, units []Unit, reply any) ([]Outcome, error) {
	done := outcomes(units, reply)
	s.countUnits(units, done)
	s.pace.recordUnits(len(done), len(units))
	if len(done) == len(units) {
		return done, nil
	}
	more, err := s.apply(ctx, who, units[len(done):], false)
	return append(done, more...), err
}

// A scriptCall is a call of a script with its keys and arguments, and the form of its reply.
type scriptCall struct {
	script *lua.Script
	keys   []string
	args   []any
	want   conn.ReplyForm
}

// send adds the call to a pipeline.
func (c scriptCall) send(ctx context.Context, s *Store, p redis.Pipeliner) *redis.Cmd {
	return s.Conn.Script(c.script).EvalSha(ctx, p, s.Conn.ScriptKeys(c.keys), c.args...)
}

// read returns the reply of Redis to the call.
func (c scriptCall) read(answer *redis.Cmd) (any, error) {
	reply, err := answer.Result()
	return reply, conn.InForm(reply, err, c.want)
}

// runBoth sends two calls in one round trip, and repeats both until Redis has answered the first call. If the answer to
// the second call is lost, runBoth then repeats the second call alone. When the context sending has ended, runBoth no
// longer sends the second call.
//
// runBoth also returns the time just before the calls were first sent, and how long the last exchange took.
func (s *Store) runBoth(
	ctx, sending context.Context, first, second scriptCall,
) (sent time.Time, took time.Duration, reply, reply2 any, err, err2 error) {
	sent = time.Now()
	err = s.Conn.UntilAnswered(ctx, func(ctx context.Context) (err error) {
		begun := time.Now()
		p := s.Conn.Redis.Pipeline()
		a := first.send(ctx, s, p)
		if err2 = context.Cause(sending); err2 != nil {
			conn.Exec(ctx, p)
			reply, err = first.read(a)
			return err
		}
		b := second.send(ctx, s, p)
		conn.Exec(ctx, p)
		took = time.Since(begun)
		reply2, err2 = second.read(b)
		reply, err = first.read(a)
		return err
	})
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, _, err = s.Conn.RunAt(ctx, first.script, first.keys, first.args, first.want)
	}
	s.Conn.RecordRun(first.script, err)
	var refused redis.Error
	if sending.Err() == nil && (redis.HasErrorPrefix(err2, "NOSCRIPT") || err2 != nil && !errors.As(err2, &refused)) {
		reply2, _, err2 = s.Conn.RunAt(sending, second.script, second.keys, second.args, second.want)
	}
	s.Conn.RecordRun(second.script, err2)
	return sent, took, reply, reply2, conn.Unstorable(err), err2
}

// Execute reports rounds that have ended (see [rules.Execute]). If a result is too late, or belongs to another
// claim, the error in its Outcome is a *[rules.StateError]. A repeated report succeeds.
func (s *Store) Execute(ctx context.Context, worker string, results ...rules.Move) ([]Outcome, error) {
	return s.apply(ctx, worker, unitsOf(results), false)
}

// unitsOf makes each move a unit of its own. The units share the memory of the moves.
func unitsOf(moves []rules.Move) []Unit {
	units := make([]Unit, len(moves))
	for i := range moves {
		units[i] = Unit{Moves: moves[i : i+1 : i+1]}
	}
	return units
}
