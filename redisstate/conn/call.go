package conn

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/lua"
)

// callSlots are the call slots of this client. A call slot makes one call at a time, and numbers its calls. Redis keeps
// the last answer of each call slot. So a repeated call gets the first answer again. A call that arrives after a later
// call of the same slot gets an error.
type callSlots struct {
	mu   sync.Mutex
	free []int
	Last []uint64
	Kept time.Time // when a call last renewed the expiry of the stored answers
}

func (c *callSlots) Take() (slot int, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) == 0 {
		c.free = append(c.free, len(c.Last))
		c.Last = append(c.Last, 0)
	}
	slot = c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.Last[slot]++
	if time.Since(c.Kept) > keepPause { // see the function remember in prelude.lua
		c.Kept = time.Now()
		c.Last[slot] += 99 - (c.Last[slot]-1)%100
	}
	return slot, c.Last[slot]
}

// keepPause is the longest time between two calls that renew the expiry of the stored answers.
const keepPause = time.Hour

// hasSlots reports whether this client has ever used a call slot.
func (c *callSlots) hasSlots() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.Last) > 0
}

func (c *callSlots) GiveBack(slot int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, slot)
}

// Call runs a script in a free call slot, and repeats the call until Redis has answered.
func (s *Conn) Call(ctx context.Context, doing string, script *lua.Script, keys []string,
	args func(slot int, sequence uint64) []any, want ReplyForm,
) (any, error) {
	slot, sequence := s.Calls.Take()
	defer s.Calls.GiveBack(slot)
	return s.Run(ctx, doing, script, keys, args(slot, sequence), want)
}

// Run runs a script, and repeats the call until Redis has answered in the form want. The error says what the call was
// doing.
func (s *Conn) Run(ctx context.Context, doing string, script *lua.Script, keys []string, args []any,
	want ReplyForm,
) (any, error) {
	reply, _, err := s.RunAt(ctx, script, keys, args, want)
	return reply, Failed(doing, err)
}

// RunAt is like Run, but also returns the time just before the call was last sent.
func (s *Conn) RunAt(ctx context.Context, script *lua.Script, keys []string, args []any, want ReplyForm) (reply any,
	sent time.Time, err error,
) {
	changes := !script.Unconfirmed && acknowledged(ctx)
	var replicas *Replicas
	if changes {
		replicas = s.replicasOf(ctx)
	}
	keys = s.ScriptKeys(keys)
	err = s.until(ctx, func(ctx context.Context) (_ bool, err error) {
		sent = time.Now()
		once := func() { reply, err = s.runOnce(ctx, s.Script(script), keys, args, replicas) }
		for once(); forgot(err); once() {
			if err := s.skipForgotten(ctx); err != nil {
				return changes, err
			}
		}
		if err != nil && script.Full == lua.Fails && strings.HasPrefix(err.Error(), "OOM") {
			return changes, ErrFull
		}
		return changes, InForm(reply, err, want)
	})
	s.RecordRun(script, err)
	return reply, sent, Unstorable(err)
}

// runOnce runs a script. If replicas is not nil, it waits until replicas have confirmed the writes.
func (s *Conn) runOnce(
	ctx context.Context, x *redis.Script, keys []string, args []any, replicas *Replicas,
) (any, error) {
	run := func(call func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd) (any, error) {
		if replicas == nil {
			return call(ctx, s.Redis, keys, args...).Result()
		}
		p := s.Redis.Pipeline()
		answer := call(ctx, p, keys, args...)
		unconfirmed := s.execConfirmed(ctx, p, replicas)
		reply, err := answer.Result()
		if unconfirmed != nil && (err == nil || err == redis.Nil) {
			err = unconfirmed
		}
		return reply, err
	}
	reply, err := run(x.EvalSha)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = run(x.Eval)
	}
	if err == redis.Nil { // the script returns nothing
		err = nil
	}
	return reply, err
}

// Script returns the form of a script that this Redis knows.
func (s *Conn) Script(x *lua.Script) *redis.Script { return x.Of(s.flags.Load(), s.cluster != nil) }

// ScriptKeys returns the keys of a call of a script. In a cluster, the last one never exists ([lua.Script.Of]).
func (s *Conn) ScriptKeys(keys []string) []string {
	if s.cluster == nil {
		return keys
	}
	return append(slices.Clip(keys), s.Keys.Absent())
}

// RecordRun records that Redis has run a script. If err is an error, Redis has not run the script, and RecordRun
// records nothing.
func (s *Conn) RecordRun(script *lua.Script, err error) {
	if err != nil {
		return
	}
	s.scriptWorked.Store(true)
	if script.Moves {
		s.taskMoved.Store(true)
	}
}

// CallOnce runs a script whose first arguments are a call slot and a sequence number. If once is false, the script gets
// no call slot, and recognizes a repeated call by its claims. The error does not say what the call was doing.
func (s *Conn) CallOnce(ctx context.Context, script *lua.Script, keys []string, once bool, want ReplyForm,
	encode func(e *Args),
) (any, error) {
	args := func(slot string, sequence uint64) []any {
		e := &Args{All: make([]any, 0, 80)}
		e.Add(slot, strconv.FormatUint(sequence, 10))
		encode(e)
		return e.All
	}
	if r, ok := ctx.Value(requestKey{}).(*request); ok && once {
		all, slot, sequence := r.next(s.Keys, keys)
		return s.Run(ctx, "", script, all, args(slot, sequence), want)
	}
	if once {
		return s.Call(ctx, "", script, keys, func(slot int, sequence uint64) []any {
			return args(strconv.Itoa(slot), sequence)
		}, want)
	}
	return s.Run(ctx, "", script, keys, args("", 0), want)
}

type betweenKey struct{}

// Between returns a context. After each call to Redis with this context, a Conn calls the function. So a server can
// send heartbeats while it works through many pages. The function makes its own calls with another context. If it is
// nil, the Conn calls nothing.
func Between(ctx context.Context, do func()) context.Context {
	return context.WithValue(ctx, betweenKey{}, do)
}

func between(ctx context.Context) {
	if do, _ := ctx.Value(betweenKey{}).(func()); do != nil {
		do()
	}
}
