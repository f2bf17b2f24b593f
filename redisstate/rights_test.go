package redisstate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// withOperator returns a store, and the connection of another user, who can change the rights of the store's user.
func withOperator(t *testing.T) (*redisstate.Store, *redis.Client) {
	addr := redistest.Start(t, redistest.Args("--user", "operator", "on", "nopass", "~*", "&*", "+@all")).Addr
	operator := redis.Options{Addr: addr, DB: redistest.Database(t), Username: "operator", Password: "any"}
	return connect(t, addr, redistest.Namespace(t)), redistest.Client(t, operator)
}

// If the Redis user lacks a right that only some calls need, these calls fail. They do not wait for the right, even if
// they succeeded earlier.
func TestAMissingRightOfOneCall(t *testing.T) {
	t.Parallel()
	s, operator := withOperator(t)
	ids := mustOpen(t, s, define("a"))
	c := mustClaim(t, s, 1)[0]
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "-xadd", "-memory", "-scan", "-info").Err())

	renewal := redisstate.LeaseRenewal{ID: ids[0], Claim: c.ID}
	news := renewal
	news.Report.Updates = []string{"one"}
	for name, call := range map[string]func(ctx context.Context) error{
		"info":                     func(ctx context.Context) error { _, err := s.Conn.Info(ctx, "memory"); return err },
		"a renewal with an update": func(ctx context.Context) error { _, err := s.Renew(ctx, 60, news); return err },
	} {
		var forbidden *conn.ForbiddenError
		if err := call(t.Context()); !errors.As(err, &forbidden) || !strings.Contains(err.Error(), s.Conn.Addr) || !strings.Contains(err.Error(), "grant ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	expect.NoError(t, expect.Result(s.Renew(t.Context(), 60, renewal)).Value(t).Lost[0])
	sizes := expect.Result(s.MemoryOf(t.Context(), ids)).Value(t)
	expect.MustLen(t, sizes, 1)
	expect.Equal(t, sizes[0], 0)
	s.Conn.Redis.Set(t.Context(), s.Keys.TaskID(), index.MaxID, 0) // so a walk would scan the keys
	expect.Equal(t, pages(t, s, 10), [][]int64{ids})
	_, _, done, err := audit.Of(s).DanglingIDs(t.Context(), audit.IndexPage{}, 10)
	expect.NoError(t, err, "the audit of indexes")
	expect.True(t, done, "the audit of indexes does not end")
	n := s.Conn.Outages()
	expect.True(t, n == 0, n, "outages")
	expect.Result(operator.Exists(t.Context(), s.Keys.Due()).Result()).Is(t, 1, "due")
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "-@write").Err())
	expect.Result(s.Counts(t.Context())).OK(t) // its script only reads
}

// CheckRights names the missing commands, and changes nothing. A right that only some calls need is not among them.
func TestCheckRights(t *testing.T) {
	t.Parallel()
	s, operator := withOperator(t)
	before := conntest.Dump(t, s.Conn)
	expect.NoError(t, s.Conn.CheckRights(t.Context()))
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "-xadd", "-memory", "-scan").Err())
	expect.NoError(t, s.Conn.CheckRights(t.Context()))
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "-hset", "-zadd", "-time").Err())
	var refused *conn.RefusedError
	err := s.Conn.CheckRights(t.Context())
	expect.True(t, errors.As(err, &refused), err)
	expect.Contains(t, err.Error(), "the user lacks the rights to HSET, ZADD, TIME; grant them (+hset +zadd +time)")
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "+@all", "-unlink").Err())
	expect.Fails(t, s.Conn.CheckRights(t.Context()), "the rights to UNLINK;")
	must(t, operator.Do(t.Context(), "ACL", "SETUSER", "default", "+@all").Err())
	expect.NoError(t, s.Conn.CheckRights(t.Context()))
	expect.Equal(t, cmp.Diff(before, conntest.Dump(t, s.Conn)), "")
}

// If the user may not run one of the commands of the first check, Connect returns an error, which says that the user
// lacks a right.
func TestReadyNamesAMissingRight(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	admin := expect.Result(redisstate.Connect(t.Context(), conntest.Config(t, r.Addr), "admin", quiet)).Value(t)
	t.Cleanup(func() { admin.Close() })
	for _, command := range []string{"ping", "type", "get", "set", "info"} {
		must(t, admin.Conn.Redis.Do(t.Context(), "ACL", "SETUSER", "u", "reset", "on", ">p", "~*", "&*", "+@all", "-"+command).Err())
		at := conntest.Config(t, r.Addr)
		at.Username, at.Password = "u", "p"
		s, err := redisstate.Connect(t.Context(), at, "ns", quiet)
		if err == nil {
			s.Close()
		}
		var refused *conn.RefusedError
		expect.MustTrue(t, errors.As(err, &refused), "without the right to", command, err)
		expect.Contains(t, err.Error(), "the user lacks a right that TDF needs: ", "without the right to", command)
	}
}
