package redisstate

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A scriptCall is a call of a script with its keys and arguments, and the form of its reply.
type scriptCall struct {
	script *lua.Script
	keys   []string
	args   []any
	want   conn.ReplyForm
}

// send adds the call to a pipeline.
func (c scriptCall) send(ctx context.Context, s *Store, p redis.Pipeliner) *redis.Cmd {
	return s.Script(c.script).EvalSha(ctx, p, c.keys, c.args...)
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
	err = s.UntilAnswered(ctx, func(ctx context.Context) (err error) {
		begun := time.Now()
		p := s.Redis.Pipeline()
		a := first.send(ctx, s, p)
		if err2 = context.Cause(sending); err2 != nil {
			_, _ = p.Exec(ctx)
			reply, err = first.read(a)
			return err
		}
		b := second.send(ctx, s, p)
		_, _ = p.Exec(ctx) // each command has its own error
		took = time.Since(begun)
		reply2, err2 = second.read(b)
		reply, err = first.read(a)
		return err
	})
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, _, err = s.RunAt(ctx, first.script, first.keys, first.args, first.want)
	}
	s.RecordRun(first.script, err)
	var refused redis.Error
	if sending.Err() == nil && (redis.HasErrorPrefix(err2, "NOSCRIPT") || err2 != nil && !errors.As(err2, &refused)) {
		reply2, _, err2 = s.RunAt(sending, second.script, second.keys, second.args, second.want)
	}
	s.RecordRun(second.script, err2)
	return sent, took, reply, reply2, conn.Unstorable(err), err2
}
