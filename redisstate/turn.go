package redisstate

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Turn is one turn of a worker: it reports rounds that have ended as [Store.Execute] does, and claims tasks as [Store.Claim]
// does. Without results, it only claims. If r.Most is 0, it only reports.
//
// If the results have one form, both calls travel together. So a worker that runs many short rounds waits for Redis once,
// not twice. A claim that Redis refuses, for example because Redis is full, does not delay the results: the error claimErr is
// the claim's own. Turn then leaves overdue tasks to the next claim. When the context claiming has ended, Turn no longer sends
// the claim, but still sends the results.
func (s *Store) Turn(
	ctx, claiming context.Context, r ClaimRequest, results ...tdf.Move,
) (outcomes []Outcome, c Claimed, err, claimErr error) {
	switch {
	case len(results) == 0 && r.Most == 0:
		return nil, c, nil, nil
	case len(results) == 0:
		c, claimErr = s.Claim(claiming, r)
		return nil, c, nil, claimErr
	case r.Most == 0:
		outcomes, err = s.Execute(ctx, r.Worker, results...)
		return outcomes, c, err, nil
	}
	units := unitsOf(results)
	n, oneForm := nextCall(units)
	if err := s.Ready(ctx); err != nil || !oneForm || s.claimsMustWait(ctx) || min(n, unitBatch(units), s.pace.next()) < len(units) {
		outcomes, err := s.apply(ctx, r.Worker, units, false)
		if err == nil {
			c, _, claimErr = s.claim(claiming, r)
		}
		return outcomes, c, err, claimErr
	}
	return s.turn(ctx, claiming, r, units)
}

// turn sends a call of move.lua and a call of claim.lua together. It returns the answers to both calls.
func (s *Store) turn(ctx, claiming context.Context, r ClaimRequest, units []Unit) (done []Outcome, c Claimed, err, claimErr error) {
	e := &conn.Args{All: make([]any, 0, 64+16*len(units))}
	e.Add("", "0")
	s.encodeMove(e, r.Worker, units)
	move := scriptCall{lua.Move, s.moveKeys(ctx, &units[0].Moves[0]), e.All, outcomesOf(len(units))}
	slot, sequence := s.Calls.Take()
	defer s.Calls.GiveBack(slot)
	args, queues := s.claimArgs(r)
	claim := scriptCall{lua.Claim, s.claimKeys(), args(slot, sequence), claimForm(len(queues))}
	sent, took, moved, claimed, err, claimErr := s.runBoth(ctx, claiming, move, claim)
	if claimErr = conn.Failed(claimTasks, claimErr); claimErr == nil {
		s.link.observe(replySize(claimed)+sizeOf(units), took)
		c, _ = s.readClaimed(r.Worker, queues, claimed)
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
	s.pace.recordUnits(len(done), len(units))
	if len(done) == len(units) {
		return done, nil
	}
	more, err := s.apply(ctx, who, units[len(done):], false)
	return append(done, more...), err
}
