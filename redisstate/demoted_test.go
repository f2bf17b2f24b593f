package redisstate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

// If the primary becomes a replica while replicas confirm a write, this is an outage: the call is repeated.
func TestAPrimaryBecomesAReplica(t *testing.T) {
	t.Parallel()
	primary, replica := redistest.Start(t, redistest.Replicates), redistest.Start(t, redistest.Replicates)
	replica.Follow(primary)
	at := conntest.Config(t, primary.Addr)
	at.Replicas = config.Replicas{Wanted: 1, Timeout: 4 * time.Second}
	s := expect.Result(redisstate.Connect(t.Context(), at, redistest.Namespace(t), quiet)).Value(t)
	t.Cleanup(func() { s.Close() })
	mustOpen(t, s, define("a"))
	replica.Follow(nil)
	opened := make(chan error)
	go func() {
		_, err := s.Open(t.Context(), "opener", define("b"))
		opened <- err
	}()
	r := redistest.Client(t, redis.Options{Addr: primary.Addr})
	expect.Eventually(t, "the call waits for the replica", func() bool {
		return strings.Contains(r.Info(t.Context(), "clients").Val(), "blocked_clients:1")
	})
	primary.Follow(replica) // Redis answers UNBLOCKED
	primary.Follow(nil)
	replica.Follow(primary)
	must(t, <-opened)
	expect.Equal(t, expect.Result(s.Counts(t.Context())).Value(t).Total(), 2)
}
