package conn

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

func TestSetting(t *testing.T) {
	addr := redistest.Start(t, redistest.Args("--hash-max-listpack-value", "99", "--user", "operator", "on", "nopass", "~*", "&*", "+@all")).Addr
	s := connect(t, addr)
	expectSetting := func(name, want string) {
		t.Helper()
		expect.Result(s.setting(t.Context(), name)).Is(t, want, name)
	}
	expectSetting("hash-max-listpack-value", "99")
	expectSetting("no-such-setting", "")
	for _, values := range []struct{ hash, zset, untuned string }{
		{"99", "128", "hash-max-listpack-value is 99, zset-max-listpack-entries is 128"},
		{"1024", "33", "zset-max-listpack-entries is 33"},
		{"1023", "32", "hash-max-listpack-value is 1023"},
		{"4096", "0", ""}, // each value is better than the shipped one
	} {
		must(t, s.Redis.ConfigSet(t.Context(), "hash-max-listpack-value", values.hash).Err())
		must(t, s.Redis.ConfigSet(t.Context(), "zset-max-listpack-entries", values.zset).Err())
		var found []string
		for _, u := range expect.Result(s.Untuned(t.Context())).Value(t) {
			found = append(found, u.Name+" is "+u.Found)
		}
		expect.Equal(t, strings.Join(found, ", "), values.untuned)
	}
	operator := redistest.Client(t, redis.Options{Addr: addr, Username: "operator", Password: "any"})
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "-config").Err())
	expectSetting("hash-max-listpack-value", "")
}

// The method setting returns no error, even for the embedded Redis, which has no settings.
func TestSettingOfTheEmbeddedRedis(t *testing.T) {
	t.Parallel()
	r := expect.Result(embedded.Start("127.0.0.1:0")).Value(t)
	t.Cleanup(r.Close)
	expect.Result(connect(t, r.Addr()).setting(t.Context(), "hash-max-listpack-value")).OK(t)
}

func connect(t *testing.T, addr string) *Conn {
	host, port, _ := net.SplitHostPort(addr)
	cfg := config.Redis{Host: host}
	cfg.Port, _ = strconv.Atoi(port)
	c := expect.Result(New(cfg, redistest.Namespace(t), slog.New(slog.DiscardHandler))).Value(t)
	t.Cleanup(func() { c.Close() })
	return c
}
