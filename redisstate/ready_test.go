package redisstate

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// If the user may not run one of the commands of the first check, Connect returns an error, which says that the user
// lacks a right.
func TestReadyNamesAMissingRight(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	admin := expect.Result(Connect(t.Context(), redisAt(t, r.Addr), "admin", quiet)).Value(t)
	t.Cleanup(func() { admin.Close() })
	for _, command := range []string{"ping", "type", "get", "set", "info"} {
		must(t, admin.Redis.Do(t.Context(), "ACL", "SETUSER", "u", "reset", "on", ">p", "~*", "&*", "+@all", "-"+command).Err())
		at := redisAt(t, r.Addr)
		at.Username, at.Password = "u", "p"
		s, err := Connect(t.Context(), at, "ns", quiet)
		if err == nil {
			s.Close()
		}
		var refused *conn.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the user lacks a right that TDF needs: NOPERM") {
			t.Errorf("without the right to %s: %v", command, err)
		}
	}
}
