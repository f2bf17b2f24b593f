package conn_test

import (
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// While Redis is busy or loads its data, it refuses the commands that prepare a new connection. Pipeline and Ask then ask
// again, and never take the missing answers for empty ones.
func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{"-BUSY Redis is busy running a script.\r\n", "-LOADING Redis is loading the dataset in memory\r\n"} {
		for refused := range int64(8) {
			proxy := redistest.NewProxy(t, redistest.Shared(t))
			c := conntest.Connect(t, proxy.Addr)
			key := c.Keys.Key("a")
			expect.NoError(t, c.Redis.ZAdd(t.Context(), key, redis.Z{Score: 7, Member: "m"}).Err())
			var replies atomic.Int64
			proxy.Alter(func(reply []byte) []byte {
				if replies.Add(1) <= refused {
					return []byte(refusal)
				}
				return reply
			})
			proxy.Cut()
			var score *redis.FloatCmd
			err := c.Pipeline(t.Context(), "test", func(p redis.Pipeliner) { score = p.ZScore(t.Context(), key, "m") })
			expect.NoError(t, err, refusal, refused)
			expect.Equal(t, score.Val(), 7.0, refusal, refused)

			replies.Store(0)
			proxy.Cut()
			alone, err := conn.Ask(t.Context(), c, "test", func(r redis.Cmdable) *redis.FloatCmd { return r.ZScore(t.Context(), key, "m") })
			expect.NoError(t, err, refusal, refused)
			expect.Equal(t, alone, 7.0, "a single command", refusal, refused)
		}
	}
}
