package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client returns a client of a Redis. The test closes it. Its timeouts are long, because a Redis on a slow machine may
// need more than the few seconds that go-redis waits by default.
func Client(t testing.TB, o redis.Options) *redis.Client {
	o.Protocol = 2
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = answer, answer, answer, answer
	c := redis.NewClient(&o)
	t.Cleanup(func() { c.Close() })
	return c
}

// answer is how long a client waits for Redis.
const answer = 5 * time.Minute
