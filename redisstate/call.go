package redisstate

import (
	"context"
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
	last []uint64
	kept time.Time // when a call last renewed the expiry of the stored answers
}

func (c *callSlots) take() (slot int, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) == 0 {
		c.free = append(c.free, len(c.last))
		c.last = append(c.last, 0)
	}
	slot = c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.last[slot]++
	if time.Since(c.kept) > keepPause { // see the function remember in prelude.lua
		c.kept = time.Now()
		c.last[slot] += 99 - (c.last[slot]-1)%100
	}
	return slot, c.last[slot]
}

// keepPause is the longest time between two calls that renew the expiry of the stored answers.
const keepPause = time.Hour

// hasSlots reports whether this client has ever used a call slot.
func (c *callSlots) hasSlots() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.last) > 0
}

func (c *callSlots) giveBack(slot int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, slot)
}

// call runs a script in a free call slot, and repeats the call until Redis has answered.
func (s *Store) call(ctx context.Context, doing string, script *lua.Script, keys []string, args func(slot int, sequence uint64) []any, want replyForm) (any, error) {
	slot, sequence := s.calls.take()
	defer s.calls.giveBack(slot)
	return s.run(ctx, doing, script, keys, args(slot, sequence), want)
}

// run runs a script, and repeats the call until Redis has answered in the form want. The error says what the call was doing.
func (s *Store) run(ctx context.Context, doing string, script *lua.Script, keys []string, args []any, want replyForm) (any, error) {
	reply, _, err := s.runAt(ctx, script, keys, args, want)
	return reply, failed(doing, err)
}

// runAt is like run, but also returns the time just before the call was last sent.
func (s *Store) runAt(ctx context.Context, script *lua.Script, keys []string, args []any, want replyForm) (reply any, sent time.Time, err error) {
	err = s.untilAnswered(ctx, func(ctx context.Context) error {
		var err error
		sent = time.Now()
		reply, err = s.script(script).Run(ctx, s.rdb, keys, args...).Result()
		if err == redis.Nil { // the script returns nothing
			err = nil
		}
		if err != nil && script.Full == lua.Fails && strings.HasPrefix(err.Error(), "OOM") {
			return ErrFull
		}
		return inForm(reply, err, want)
	})
	s.recordRun(script, err)
	return reply, sent, unstorable(err)
}

// script returns the form of a script that this Redis knows.
func (s *Store) script(x *lua.Script) *redis.Script { return x.Of(s.flags.Load()) }

// recordRun records that Redis has run a script. If err is an error, Redis has not run the script, and recordRun
// records nothing.
func (s *Store) recordRun(script *lua.Script, err error) {
	if err == nil {
		s.scriptWorked.Store(true)
		if script.Moves {
			s.taskMoved.Store(true)
		}
	}
}

// callOnce runs a script whose first arguments are a call slot and a sequence number. If once is false, the script gets
// no call slot, and recognizes a repeated call by its claims. The error does not say what the call was doing.
func (s *Store) callOnce(ctx context.Context, script *lua.Script, keys []string, once bool, want replyForm, encode func(e *encoder)) (any, error) {
	args := func(slot string, sequence uint64) []any {
		e := encoder{args: make([]any, 0, 64)}
		e.add(slot, strconv.FormatUint(sequence, 10))
		encode(&e)
		return e.args
	}
	if once {
		return s.call(ctx, "", script, keys, func(slot int, sequence uint64) []any { return args(strconv.Itoa(slot), sequence) }, want)
	}
	return s.run(ctx, "", script, keys, args("", 0), want)
}
