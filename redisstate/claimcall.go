package redisstate

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A ClaimCall identifies a claim among those of a worker that is no client of Redis. Any client may repeat the claim
// for the worker: Redis then returns the same tasks, as far as they still run with this claim.
//
// One such claim may need several calls of the script, because the worker waits for tasks. Each of them is an attempt
// with a number of its own. An attempt that finds tasks is the last one, so the claim gets tasks only once.
type ClaimCall struct {
	session         string
	number, attempt int64

	Repeated bool // the claim has got tasks before
}

// Bounds of the numbers of claims and attempts. Together they give the sequence number of a call slot, which Lua must
// be able to compute with.
const (
	MaxClaimNumber = 800_000_000
	maxAttempts    = 100_000
)

// ErrOldClaim means that the worker has already made a claim with a higher number.
var ErrOldClaim = task.NewError(task.CodeConflict,
	"a claim with a higher number was made; each claim needs a higher number than the one before")

// claimSlot is the call slot of the claims of a session.
const claimSlot = 0

// ClaimCall returns the claim with this number, from 1 to [MaxClaimNumber], of a worker's session. The error is
// [ErrOldClaim] if the session has made a claim with a higher number.
func (s *Store) ClaimCall(ctx context.Context, session string, number int64) (*ClaimCall, error) {
	last, err := conn.Ask(ctx, s.Conn, "read the last claim", func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, s.Keys.Calls(session), strconv.Itoa(claimSlot))
	})
	if err != nil && err != redis.Nil {
		return nil, err
	}
	c := &ClaimCall{session: session, number: number}
	sequence, ids, _ := strings.Cut(last, "\n")
	done, _ := strconv.ParseInt(sequence, 10, 64)
	switch done /= keptEach; {
	case done/maxAttempts > number:
		return nil, ErrOldClaim
	case done/maxAttempts == number:
		c.attempt, c.Repeated = done%maxAttempts, ids != ""
		if !c.Repeated { // the attempt has found nothing
			c.next()
		}
	}
	return c, nil
}

// keptEach makes each attempt renew the expiry of the stored answer (see the function remember in prelude.lua).
const keptEach = 100

func (c *ClaimCall) sequence() uint64 { return uint64((c.number*maxAttempts + c.attempt) * keptEach) }

func (c *ClaimCall) next() { c.attempt = min(c.attempt+1, maxAttempts-1) }

// callClaim runs claim.lua. After an attempt that finds nothing, the next begins. But if there are requirements that
// Go has not seen, Redis has stored no answer: the attempt goes on, so that another client that makes it meanwhile gets
// no other answer. With anyway, Redis stores each answer.
func (s *Store) callClaim(ctx context.Context, r *ClaimParams, args func(int, uint64) []any, anyway bool,
	form conn.ReplyForm,
) (any, error) {
	keys := s.claimKeys(r.offer())
	if r.Call == nil {
		return s.Conn.Call(ctx, claimTasks, lua.Claim, keys, args, form)
	}
	keys[0] = s.Keys.Calls(r.Call.session)
	for {
		reply, err := s.Conn.Run(ctx, claimTasks, lua.Claim, keys, args(claimSlot, r.Call.sequence()), form)
		parts := conn.List(reply)
		switch {
		case err == nil && !anyway && conn.Text(parts[claimReplySeen]) != "": // the attempt goes on
		case err == nil && len(conn.List(parts[claimReplyClaims])) == 0:
			r.Call.next()
		// Another client has made a later attempt, or a later claim.
		case err != nil && strings.Contains(err.Error(), "TDFSTALE"):
			last, err := s.ClaimCall(ctx, r.Call.session, r.Call.number)
			if err != nil {
				return nil, err
			}
			*r.Call = *last
			continue
		}
		return reply, err
	}
}
