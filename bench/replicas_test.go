package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

// BenchmarkReplicas opens tasks on a Redis with one replica, with and without waiting for it.
func BenchmarkReplicas(b *testing.B) {
	primary := startServer(b)
	replica := startServer(b)
	follow(b, replica, primary)
	host, port, _ := net.SplitHostPort(primary.Addr())
	n, _ := strconv.Atoi(port)
	for wanted := range 2 {
		for _, batch := range []int{1, 250} {
			b.Run(fmt.Sprintf("wanted=%d/tasks=%d", wanted, batch), func(b *testing.B) {
				c := &caller{redis: config.Redis{Host: host, Port: n, Replicas: config.Replicas{Wanted: wanted}}}
				var err error
				if c.store, err = redisstate.Connect(b.Context(), c.redis, "bench", slog.New(slog.DiscardHandler)); err != nil {
					b.Fatal(err)
				}
				defer c.store.Close()
				measure(b, primary, batch, func(ctx context.Context, _ int) error { return c.open(ctx, batch) })
			})
		}
	}
}

func startServer(b *testing.B) *redisserver.Server {
	r, err := redisserver.Start(append(redisserver.Shipped, "--repl-diskless-sync-delay", "0")...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Stop)
	return r
}

// follow makes a server the replica of another one, and waits until it is.
func follow(b *testing.B, replica, primary *redisserver.Server) {
	host, port, _ := net.SplitHostPort(primary.Addr())
	to := redis.NewClient(&redis.Options{Addr: replica.Addr(), Protocol: 2})
	defer to.Close()
	from := redis.NewClient(&redis.Options{Addr: primary.Addr(), Protocol: 2})
	defer from.Close()
	err := to.ReplicaOf(b.Context(), host, port).Err()
	for n := int64(0); err == nil && n < 1; {
		if err = from.Set(b.Context(), "x", "", time.Minute).Err(); err == nil {
			n, err = from.Wait(b.Context(), 1, time.Minute).Result()
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}
