package redisstate

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// A scriptCall is a call of a script with its keys and arguments.
type scriptCall struct {
	script *luaScript
	keys   []string
	args   []any
}

// send adds the call to a pipeline.
func (c scriptCall) send(ctx context.Context, s *Store, p redis.Pipeliner) *redis.Cmd {
	return c.script.of(s).EvalSha(ctx, p, c.keys, c.args...)
}

// runBoth runs two scripts with one round trip, and repeats the calls until Redis has answered the first. If the connection
// breaks between the two answers, it repeats the second call, too, because Redis may have carried it out. It also returns
// the time just before the calls were first sent.
func (s *Store) runBoth(ctx context.Context, first, second scriptCall) (sent time.Time, reply, reply2 any, err, err2 error) {
	sent = time.Now()
	err = s.untilAnswered(ctx, func(ctx context.Context) error {
		p := s.rdb.Pipeline()
		a, b := first.send(ctx, s, p), second.send(ctx, s, p)
		_, _ = p.Exec(ctx) // each command has its own error
		reply, reply2, err2 = a.Val(), b.Val(), b.Err()
		return a.Err()
	})
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = s.run(ctx, first.script, first.keys, first.args)
	}
	s.ran(first.script, err)
	var refused redis.Error
	if redis.HasErrorPrefix(err2, "NOSCRIPT") || err2 != nil && !errors.As(err2, &refused) {
		reply2, err2 = s.run(ctx, second.script, second.keys, second.args)
	}
	s.ran(second.script, err2)
	return sent, reply, reply2, unstorable(err), err2
}
