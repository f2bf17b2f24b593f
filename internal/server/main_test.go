package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// A site is a namespace with a server. Tests change it through the store, or with plain commands of Redis.
type site struct {
	*testing.T
	ns     string
	addr   string
	store  *redisstate.Store
	server *Server
	cli    *redis.Client
}

// outageGrace is the grace period of the tests' servers, in seconds.
const outageGrace = 600

var settings = config.Server{RoundDuration: time.Minute, OutageGrace: outageGrace * time.Minute / 60}

// onEach runs a test twice: with the embedded Redis and with a real Redis. Other tests use newSite, because the tests of
// redisstate already run every script on the embedded Redis.
func onEach(t *testing.T, test func(s *site)) {
	t.Run("embedded", func(t *testing.T) {
		r := expect.Result(embedded.Start("127.0.0.1:0")).Value(t)
		t.Cleanup(r.Close)
		test(newSiteAt(t, r.Addr()))
	})
	t.Run("real", func(t *testing.T) { test(newSite(t)) })
}

func connect(t *testing.T, addr, ns string) *redisstate.Store {
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	store := expect.Result(redisstate.Connect(t.Context(), config.Redis{Host: host, Port: n, DB: redistest.Database(t)}, ns, quiet())).Value(t)
	t.Cleanup(func() { store.Close() })
	return store
}

// newSite returns a site in the real Redis that all tests share.
func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteAt(t, redistest.Shared(t))
}

func newSiteAt(t *testing.T, addr string) *site {
	ns := redistest.Namespace(t)
	store := connect(t, addr, ns)
	cli := redistest.Client(t, redis.Options{Addr: addr, DB: redistest.Database(t)})
	server := New("server", settings, store, quiet())
	server.audit.grace = 0
	return &site{T: t, ns: ns, addr: addr, store: store, cli: cli, server: server}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// do sends a command to Redis, as redis-cli does. If a key begins with $, do replaces the $ by the namespace.
func (s *site) do(args ...any) any {
	s.Helper()
	for i, a := range args {
		if text, ok := a.(string); ok && len(text) > 0 && text[0] == '$' {
			args[i] = s.ns + ":" + text[1:]
		}
	}
	reply, err := s.cli.Do(s.Context(), args...).Result()
	if err != nil {
		expect.MustEqual[any](s, err, redis.Nil)
	}
	return reply
}

func (s *site) round() Done {
	s.Helper()
	return expect.Result(s.server.RunOnce(s.Context())).Value(s)
}

// returned makes rounds until no more held tasks return, and returns their number: on a busy machine, a round leaves some
// to the next one.
func (s *site) returned() (all int) {
	s.Helper()
	for n := 1; n > 0; all += n {
		n = s.round()["returned"]
	}
	return all
}

func (s *site) now() task.Time {
	s.Helper()
	return expect.Result(s.store.Now(s.Context())).Value(s)
}

func (s *site) open(definitions ...task.Properties) []int64 {
	s.Helper()
	return expect.Result(s.store.Open(s.Context(), "manager", definitions...)).Value(s)
}

func (s *site) claim(lease task.Seconds) redisstate.Claim {
	s.Helper()
	c := expect.Result(s.store.Claim(s.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: lease})).Value(s)
	expect.MustLen(s, c.Claims, 1)
	return c.Claims[0]
}

func (s *site) execute(c redisstate.Claim, r rules.Result) error {
	s.Helper()
	m := expect.Result(rules.Execute(c.Task, c.ID, r)).Value(s)
	outcomes := expect.Result(s.store.Execute(s.Context(), "w", m)).Value(s)
	return outcomes[0].Err
}

// mustBe returns a task. It ends the test if the hash has another state or round, or if the list of this state does not
// contain the id.
func (s *site) mustBe(id int64, state task.State, round int) *task.Task {
	s.Helper()
	stored := expect.Result(s.store.ReadOne(s.Context(), id, redisstate.Want{Fields: redisstate.Whole | redisstate.Lists})).Value(s)
	one := stored.Task
	expect.MustEqual(s, one.State, state, id, round)
	expect.MustEqual(s, one.Round, round, id, state)
	expect.MustEqual(s, fmt.Sprint(stored.Lists), fmt.Sprint([]task.State{state}), id, state, round)
	return one
}

// checkConsistent checks that the audit finds nothing.
func (s *site) checkConsistent() {
	s.Helper()
	expect.Len(s, expect.Result(audit.Of(s.store).Check(s.Context())).Value(s), 0)
}

func define() task.Properties { return task.Defaults("p", "rsync:/p/run.sh", "1") }
