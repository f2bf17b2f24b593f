package redisstate_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

var must = expect.NoError

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// connect returns a Store for the given namespace, and closes it at the end of the test.
func connect(t testing.TB, addr, namespace string) *redisstate.Store {
	t.Helper()
	s := expect.Result(redisstate.Connect(t.Context(), conntest.Config(t, addr), namespace, quiet)).Value(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// onEach runs a test with the embedded Redis and with a real Redis. Together, these tests run every script on the embedded
// Redis, because its Lua differs from that of a real Redis. Other tests use newStore.
func onEach(t *testing.T, test func(t *testing.T, s *redisstate.Store)) {
	conntest.EachRedis(t, func(t *testing.T, addr string) { test(t, connect(t, addr, redistest.Namespace(t))) })
}

// newStore marks the test as parallel, and returns a Store for a namespace of its own in a real Redis.
func newStore(t *testing.T) *redisstate.Store {
	t.Helper()
	t.Parallel()
	return connect(t, redistest.Shared(t), redistest.Namespace(t))
}

type world = conntest.World

func dump(t testing.TB, s *redisstate.Store) world {
	t.Helper()
	return conntest.Dump(t, s.Conn)
}

func readAll(t testing.TB, s *redisstate.Store) world {
	t.Helper()
	return conntest.ReadAll(t, s.Conn)
}

// changed returns the differences between two worlds, or "" if they are equal.
func changed(t testing.TB, before, after world) string {
	t.Helper()
	return cmp.Diff(before, after)
}

func define(input string) task.Properties { return task.Defaults("p", "rsync:/p/run.sh", input) }

func mustOpen(t testing.TB, s *redisstate.Store, definitions ...task.Properties) []int64 {
	t.Helper()
	return expect.Result(s.Open(t.Context(), "manager", definitions...)).Value(t)
}

func mustClaim(t testing.TB, s *redisstate.Store, most int) []redisstate.Claim {
	t.Helper()
	var claims []redisstate.Claim
	for more := true; more && len(claims) < most; {
		c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: most - len(claims), Lease: 3600})).Value(t)
		claims, more = append(claims, c.Claims...), c.More || len(c.Claims) == redisstate.MaxTasksPerCall
	}
	return claims
}

// mustApply carries out a move. It fails the test if the given error is not nil, or if the move fails.
func mustApply(t testing.TB, s *redisstate.Store, m rules.Move, err error) {
	t.Helper()
	must(t, err)
	expect.NoError(t, expect.Result(s.Apply(t.Context(), "test", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)[0].Err)
}

// mustMove makes the move that a method of the task decides, such as (*task.Task).Cancel.
func mustMove(t testing.TB, s *redisstate.Store, id int64, decide func(*task.Task) (rules.Move, error)) {
	t.Helper()
	m, err := decide(read(t, s, id))
	mustApply(t, s, m, err)
}

func mustChange(t testing.TB, s *redisstate.Store, id int64, c task.Changes) {
	t.Helper()
	mustMove(t, s, id, func(t *task.Task) (rules.Move, error) { return rules.Change(t, c) })
}

func mustExecute(t testing.TB, s *redisstate.Store, c redisstate.Claim, r rules.Result) {
	t.Helper()
	m := expect.Result(rules.Execute(c.Task, c.ID, r)).Value(t)
	expect.NoError(t, expect.Result(s.Execute(t.Context(), "w", m)).Value(t)[0].Err)
}

// mustSettle settles one task, as a server would.
func mustSettle(t testing.TB, s *redisstate.Store, id int64) {
	t.Helper()
	seen := expect.Result(s.Read(t.Context(), []int64{id}, redisstate.Want{Fields: redisstate.Rules})).Value(t)
	now := expect.Result(s.Now(t.Context())).Value(t)
	m, ok := rules.Settle(seen[0].Task, now, seen[0].Invalid)
	expect.MustTrue(t, ok, "nothing to settle", seen[0].Task)
	mustApply(t, s, m, nil)
}

func mustBeSound(t testing.TB, s *redisstate.Store) {
	t.Helper()
	findings := expect.Result(audit.Of(s).Check(t.Context())).Value(t)
	for _, f := range findings {
		t.Errorf("check: %v", f)
	}
}

func read(t testing.TB, s *redisstate.Store, id int64) *task.Task {
	t.Helper()
	found := expect.Result(s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Whole})).Value(t)
	return found.Task
}

// An observer is a hook of go-redis. It gets each command that Redis has answered, except those in pipelines.
type observer func(redis.Cmder)

func (o observer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o observer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o observer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		if err == nil {
			o(c)
		}
		return err
	}
}

// once returns an observer that calls a function after the first command of a kind.
func once(is func(redis.Cmder) bool, do func()) observer {
	var done atomic.Bool
	return func(c redis.Cmder) {
		if is(c) && done.CompareAndSwap(false, true) {
			do()
		}
	}
}

// mentions reports whether a command names these properties.
func mentions(c redis.Cmder, properties []string) bool {
	var sent []string
	for _, arg := range c.Args() {
		if text, ok := arg.(*string); ok {
			arg = *text
		}
		sent = append(sent, fmt.Sprint(arg))
	}
	return strings.Contains(strings.Join(sent, " "), strings.Join(properties, " "))
}

// logged returns a logger, and a channel with the lines that it writes.
func logged() (*slog.Logger, <-chan string) {
	lines := make(lineWriter, 100)
	return slog.New(slog.NewTextHandler(lines, nil)), lines
}

type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// took returns only the error of a call of TakeName.
func took(_ string, _ task.Time, err error) error { return err }
