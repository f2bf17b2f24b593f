package redisstate

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestSetting(t *testing.T) {
	addr := redistest.Start(t, redistest.Args("--hash-max-listpack-value", "99", "--user", "operator", "on", "nopass", "~*", "&*", "+@all")).Addr
	s := connect(t, addr, redistest.Namespace(t))
	expectSetting := func(name, want string) {
		t.Helper()
		if got, err := s.Setting(briefContext(t), name); got != want || err != nil {
			t.Errorf("%s is %q, want %q; error %v", name, got, want, err)
		}
	}
	expectSetting("hash-max-listpack-value", "99")
	expectSetting("no-such-setting", "")
	operator := redis.NewClient(&redis.Options{Addr: addr, Username: "operator", Password: "any"})
	t.Cleanup(func() { operator.Close() })
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "-config").Err())
	expectSetting("hash-max-listpack-value", "")
}

// Setting returns no error, even for the embedded Redis, which has no settings.
func TestSettingOfTheEmbeddedRedis(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		if _, err := s.Setting(t.Context(), "hash-max-listpack-value"); err != nil {
			t.Error(err)
		}
	})
}
