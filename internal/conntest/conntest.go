// Package conntest helps to test the packages that work with a connection to Redis.
package conntest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Config returns the configuration for a Redis at this address, or for the Redis Cluster with this [config.Redis.Addr].
func Config(t testing.TB, addr string) config.Redis {
	if nodes, ok := strings.CutPrefix(addr, "cluster "); ok {
		return config.Redis{Cluster: strings.Split(nodes, ", ")}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(port)
	r := config.Redis{Host: host, Port: n}
	if !OnEmbedded(t) {
		r.DB = redistest.Database(t)
	}
	return r
}

// EachRedis marks a test as parallel, and runs it twice: with the embedded Redis and with a real Redis.
func EachRedis(t *testing.T, test func(t *testing.T, addr string)) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		r, err := embedded.Start("127.0.0.1:0", embedded.Scripts("test", lua.Sums()...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		test(t, r.Addr())
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		test(t, redistest.Shared(t))
	})
}

// OnEmbedded reports whether EachRedis runs the test on the embedded Redis.
func OnEmbedded(t testing.TB) bool { return strings.HasSuffix(t.Name(), "/embedded") }

// OnEach is like EachRedis, and connects to a new namespace.
func OnEach(t *testing.T, test func(t *testing.T, c *conn.Conn)) {
	EachRedis(t, func(t *testing.T, addr string) { test(t, Connect(t, addr)) })
}

// New marks the test as parallel, and connects to a new namespace in a real Redis.
func New(t *testing.T) *conn.Conn {
	t.Parallel()
	return Connect(t, redistest.Shared(t))
}

// Connect connects to a new namespace. The connection is closed when the test ends.
func Connect(t testing.TB, addr string) *conn.Conn { return connect(t, addr, redistest.Namespace(t)) }

// Another returns another connection to the namespace of a connection.
func Another(t testing.TB, c *conn.Conn) *conn.Conn { return connect(t, c.Addr, c.Keys.Namespace()) }

func connect(t testing.TB, addr, namespace string) *conn.Conn {
	c, err := conn.New(Config(t, addr), namespace, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// A World holds all data of a namespace, as a text for each key.
type World map[string]string

// Moments matches times. A time in whole seconds has no decimals.
var Moments = regexp.MustCompile(`\b1[0-9]{9}(\.[0-9]{1,6})?\b`)

// Dump returns all data of the namespace, as ReadAll. It replaces each time in the data by T.
func Dump(t testing.TB, c *conn.Conn) World {
	t.Helper()
	w := ReadAll(t, c)
	for name, text := range w {
		w[name] = Moments.ReplaceAllString(text, "T")
	}
	return w
}

// ReadAll returns all data of the namespace, except the records of clients' calls and the replication id of Redis.
func ReadAll(t testing.TB, c *conn.Conn) World {
	t.Helper()
	ctx, prefix := context.Background(), c.Keys.Key("")
	keys := expect.Result(c.Redis.Keys(ctx, prefix+"*").Result()).Value(t)
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return strings.HasPrefix(key, prefix+"calls:") || key == c.Keys.ReplicationID()
	})
	kinds := expect.Result(c.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.Type(ctx, key)
		}
		return nil
	})).Value(t)
	w := World{}
	values := expect.Result(c.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			switch kind := kinds[i].(*redis.StatusCmd).Val(); kind {
			case "string":
				p.Get(ctx, key)
			case "set":
				p.SMembers(ctx, key)
			case "list":
				p.LRange(ctx, key, 0, -1)
			case "zset":
				p.ZRangeWithScores(ctx, key, 0, -1)
			case "hash":
				p.HGetAll(ctx, key)
			default:
				p.Echo(ctx, kind)
			}
		}
		return nil
	})).Value(t)
	for i, key := range keys {
		w[strings.TrimPrefix(key, prefix)] = textOfValue(values[i])
	}
	return w
}

func textOfValue(c redis.Cmder) string {
	var lines []string
	switch c := c.(type) {
	case *redis.StringCmd:
		return c.Val()
	case *redis.StringSliceCmd:
		if lines = c.Val(); c.Name() == "smembers" {
			slices.Sort(lines)
		}
	case *redis.ZSliceCmd:
		for _, z := range c.Val() {
			lines = append(lines, fmt.Sprintf("%v@%s", z.Member, task.Time(z.Score)))
		}
	case *redis.MapStringStringCmd:
		for _, name := range slices.Sorted(maps.Keys(c.Val())) {
			lines = append(lines, name+"="+c.Val()[name])
		}
		return strings.Join(lines, "\n")
	}
	return strings.Join(lines, " ")
}
