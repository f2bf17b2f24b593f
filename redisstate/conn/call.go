package conn

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/keys"
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
	err = s.UntilAnswered(ctx, func(ctx context.Context) error {
		var err error
		sent = time.Now()
		reply, err = s.Script(script).Run(ctx, s.Redis, keys, args...).Result()
		if err == redis.Nil { // the script returns nothing
			err = nil
		}
		if err != nil && script.Full == lua.Fails && strings.HasPrefix(err.Error(), "OOM") {
			return ErrFull
		}
		return InForm(reply, err, want)
	})
	s.RecordRun(script, err)
	return reply, sent, Unstorable(err)
}

// Script returns the form of a script that this Redis knows.
func (s *Conn) Script(x *lua.Script) *redis.Script { return x.Of(s.flags.Load()) }

// RecordRun records that Redis has run a script. If err is an error, Redis has not run the script, and recordRun
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
	if r, ok := ctx.Value(requestKey{}).(*Request); ok && once {
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

// A Request has call slots of its own, which any client can use again: if a client makes the same calls in the same
// order, Redis repeats the answers. Its calls must not run at the same time.
type Request struct {
	Name     string         // part of the name of the key in Redis
	Sequence map[string]int // the sequence number of the next call in each call slot, if it is not 1
	Repeated bool           // Redis has carried out a call of the request before

	// Answered has the call slots whose next call Redis has carried out before, so that it only repeats the answer.
	Answered map[string]bool

	slot int
}

type requestKey struct{}

// Within returns a context whose calls with a call slot use the call slots of a request.
func Within(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// InRequest reports whether the context belongs to a request.
func InRequest(ctx context.Context) bool {
	_, ok := ctx.Value(requestKey{}).(*Request)
	return ok
}

// IsRepeated reports whether the context belongs to a request that was carried out before, at least in part.
func IsRepeated(ctx context.Context) bool {
	r, ok := ctx.Value(requestKey{}).(*Request)
	return ok && r.Repeated
}

// CallIsRepeated reports whether the last call with the context belongs to a request, and was carried out before, so
// that its effects have been counted.
func CallIsRepeated(ctx context.Context) bool {
	r, ok := ctx.Value(requestKey{}).(*Request)
	return ok && r.slot > 0 && r.Answered[strconv.Itoa(r.slot-1)]
}

// next returns the keys of the next call, its call slot and its sequence number. The first key has the answers.
func (r *Request) next(k keys.Names, of []string) (all []string, slot string, sequence uint64) {
	all, slot = slices.Clone(of), strconv.Itoa(r.slot)
	all[0] = k.Calls(r.Name)
	r.slot++
	return all, slot, uint64(max(1, r.Sequence[slot]))
}
