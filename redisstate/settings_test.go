package redisstate

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestSetting(t *testing.T) {
	addr := redistest.Start(t, redistest.Args("--hash-max-listpack-value", "99", "--user", "operator", "on", "nopass", "~*", "&*", "+@all")).Addr
	s := connect(t, addr, redistest.Namespace(t))
	expectSetting := func(name, want string) {
		t.Helper()
		expect.Result(s.setting(briefContext(t), name)).Is(t, want, name)
	}
	expectSetting("hash-max-listpack-value", "99")
	expectSetting("no-such-setting", "")
	for _, value := range []string{"99", ""} { // the second value is large enough
		expect.Result(s.SmallListpack(briefContext(t))).Is(t, value, "the small setting")
		must(t, s.Redis.ConfigSet(t.Context(), "hash-max-listpack-value", "1024").Err())
	}
	operator := redis.NewClient(&redis.Options{Addr: addr, Username: "operator", Password: "any"})
	t.Cleanup(func() { operator.Close() })
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "-config").Err())
	expectSetting("hash-max-listpack-value", "")
}

// The method setting returns no error, even for the embedded Redis, which has no settings.
func TestSettingOfTheEmbeddedRedis(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		expect.Result(s.setting(t.Context(), "hash-max-listpack-value")).OK(t)
	})
}
