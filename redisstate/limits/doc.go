// Package limits has what keeps workers from claiming tasks: limits of keys, pauses of queues, groups and the
// namespace, the tasks that are held because of them, and those that are not due yet. It also has the form in which
// sets of open tasks name their tasks.
package limits

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Limiter has the methods for limits and pauses.
type Limiter struct{ Conn *conn.Conn }

// check makes a call of [conn.Conn.Write] let the server check at once the tasks that are held for a reason, if there
// are any.
func (s *Limiter) check(ctx context.Context, p redis.Pipeliner, reason string) {
	p.Do(ctx, "check", s.Conn.Keys.Key(""), reason)
}

// wake makes such a call put wake tokens into a list.
func (s *Limiter) wake(ctx context.Context, p redis.Pipeliner, key string, tokens int) {
	p.Do(ctx, "wake", key, tokens)
}
