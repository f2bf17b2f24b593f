package redisstate

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Holder returns the id of the task that was the last one to take a unique key, or 0 if there is none. The task may be
// finished or removed.
func (s *Store) Holder(ctx context.Context, key string) (int64, error) {
	text, err := conn.Ask(ctx, s.Conn, "look up a unique key", func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, s.Keys.Unique(), key)
	})
	for _, id := range conn.IDsOf([]string{text}) {
		return id, nil
	}
	return 0, err
}
