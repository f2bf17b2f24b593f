package redisstate_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/redisstate/updates"
)

// refusalOfDatabase returns the cause if a node of a cluster refuses a database: Valkey 9 has databases in a cluster, though
// only one by default.
func refusalOfDatabase(t *testing.T, r *redis.Client) string {
	info := conn.ParseInfo(expect.Result(r.Info(t.Context(), "server").Result()).Value(t))
	if strings.HasPrefix(info["server_name"], "valkey") && !strings.HasPrefix(info["valkey_version"], "8.") {
		return "it has no database with this number"
	}
	return "it is a node of a Redis Cluster: name nodes in [redis] cluster"
}

func TestConnectRefuses(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, redistest.Args("--requirepass", "right", "--databases", "4"))
	shared := redistest.Shared(t)
	cli := redistest.Client(t, redis.Options{Addr: shared, DB: redistest.Database(t)})
	ns := redistest.Namespace(t)
	for _, c := range []struct {
		name  string
		redis func() config.Redis
		ns    string
		setup func(t *testing.T)
		words string
	}{
		{name: "wrong password", words: "the password (or the username) is wrong", redis: func() config.Redis {
			r := conntest.Config(t, locked.Addr)
			r.Password = "wrong"
			return r
		}},
		{name: "no password", words: "it requires a password", redis: func() config.Redis { return conntest.Config(t, locked.Addr) }},
		{name: "wrong database", words: "it has no database with this number", redis: func() config.Redis {
			r := conntest.Config(t, locked.Addr)
			r.Password, r.DB = "right", 7
			return r
		}},
		{name: "a cluster", words: "it is a node of a Redis Cluster: name nodes in [redis] cluster", redis: func() config.Redis {
			r := conntest.Config(t, redistest.Start(t, redistest.Args("--cluster-enabled", "yes")).Addr)
			r.DB = 0
			return r
		}},
		{name: "a cluster, and a database", words: refusalOfDatabase(t, cli), redis: func() config.Redis {
			r := conntest.Config(t, redistest.Start(t, redistest.Args("--cluster-enabled", "yes")).Addr)
			r.DB = 1
			return r
		}},
		{name: "no cluster", words: "redis at cluster " + shared + ": it is not in cluster mode", redis: func() config.Redis {
			return config.Redis{Cluster: []string{shared}}
		}},
		{name: "no node with this password", words: "the password (or the username) is wrong", redis: func() config.Redis {
			return config.Redis{Cluster: []string{locked.Addr}, Password: "wrong"}
		}},
		{name: "not a Redis", words: "the server at this address is not a Redis", redis: func() config.Redis { return conntest.Config(t, chatter(t)) }},
		{
			name: "keys of other types", words: ns + ":open is a string and not a zset", ns: ns, redis: func() config.Redis { return conntest.Config(t, shared) },
			setup: func(t *testing.T) { cli.Set(t.Context(), ns+":open", "mine", 0) },
		},
		{
			name: "a newer layout", words: "has layout version 7, and this release knows version 2", ns: ns + "-7", redis: func() config.Redis { return conntest.Config(t, shared) },
			setup: func(t *testing.T) { cli.Set(t.Context(), ns+"-7:schema", 7, 0) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.setup != nil {
				c.setup(t)
			}
			s, err := redisstate.Connect(t.Context(), c.redis(), cmp.Or(c.ns, "x"), quiet)
			var refused *conn.RefusedError
			expect.MustTrue(t, errors.As(err, &refused), s, err, "want", c.words)
			expect.Contains(t, err.Error(), c.words)
			expect.NotContains(t, err.Error(), "\n", c.words)
		})
	}
}

// chatter starts a server that is not a Redis, and returns its address.
func chatter(t *testing.T) string {
	l := expect.Result(net.Listen("tcp", "127.0.0.1:0")).Value(t)
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			c.Close()
		}
	}()
	return l.Addr().String()
}

// If Redis has not started yet, Connect waits for it, and logs that it waits.
func TestConnectWaitsForRedis(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	proxy.Refuse()
	log, lines := logged()
	done := make(chan error)
	go func() {
		s, err := redisstate.Connect(t.Context(), conntest.Config(t, proxy.Addr), redistest.Namespace(t), log)
		if err == nil {
			err = s.Close()
		}
		done <- err
	}()
	line := <-lines
	expect.Contains(t, line, "connection refused")
	expect.Contains(t, line, proxy.Addr)
	proxy.Resume()
	must(t, <-done)
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	proxy.Refuse()
	ctx, stop := context.WithCancel(t.Context())
	log, lines := logged()
	done := make(chan error)
	go func() {
		_, err := redisstate.Connect(ctx, conntest.Config(t, proxy.Addr), redistest.Namespace(t), log)
		done <- err
	}()
	<-lines
	stop()
	expect.FailsWith(t, <-done, context.Canceled)
}

// If Redis has reached its maxmemory, the error of Open says so. Existing tasks can still be finished and archived.
func TestFullRedis(t *testing.T) {
	full := redistest.Start(t)
	s := connect(t, full.Addr, redistest.Namespace(t))
	must(t, s.ChangeSetting(t.Context(), task.SettingHighWater, "1"))
	mustOpen(t, s, define("a"), define("b"))
	claims := mustClaim(t, s, 2)
	must(t, s.Conn.Redis.ConfigSet(t.Context(), "maxmemory", "1").Err())
	before := dump(t, s)
	ids, err := s.Open(t.Context(), "manager", define("c"))
	expect.FailsWith(t, err, conn.ErrFull)
	expect.Len(t, ids, 0)
	expect.Equal(t, changed(t, before, dump(t, s)), "")
	renewed := expect.Result(s.Renew(t.Context(), 60, redisstate.LeaseRenewal{ID: 1, Claim: claims[0].ID})).Value(t)
	expect.NoError(t, renewed.Lost[0])
	mustExecute(t, s, claims[0], rules.Result{Output: strings.Repeat("x", 1000), Exit: "0"})
	mustSettle(t, s, 1)
	mustMove(t, s, 1, rules.Archive)
	mustMove(t, s, 2, rules.Cancel)
	mustBeSound(t, s)
	expect.Equal(t, expect.Result(s.Counts(t.Context())).Value(t).String(), "expired 1 archived 1")
	again := connect(t, full.Addr, s.Keys.Namespace()) // a component that starts while Redis is full
	must(t, again.Presence.ServerHeartbeat(t.Context(), "s", 1e9))
	must(t, again.Presence.SetGrace(t.Context(), rules.Grace{Running: 2e9}))
	must(t, again.Updates.Follow(t.Context(), 2))
	expect.Result(s.Presence.LastServerHeartbeat(t.Context())).Is(t, 1e9, "a server was seen at")
	expect.Equal(t, expect.Result(s.Presence.Grace(t.Context())).Value(t).Running, 2e9, "a grace period until")
	left := s.Conn.Redis.TTL(t.Context(), s.Keys.FollowPrefix()+"2").Val()
	expect.Compare(t, left, ">", 0)
	expect.Compare(t, left, "<=", updates.FollowLife)
	must(t, took(again.Presence.TakeName(t.Context(), presence.WorkerInfo{Name: "w"}, presence.PriorOwner{})))
	must(t, again.Presence.ManagerHeartbeat(t.Context(), 1e9, 5))
	before = dump(t, s)
	_, _, err = again.Presence.TakeName(t.Context(), presence.WorkerInfo{Name: "h", OverHTTP: true}, presence.PriorOwner{})
	expect.FailsWith(t, err, conn.ErrFull)
	_, err = again.Conn.Once(t.Context(), "once-k", "content", func() error { return nil })
	expect.FailsWith(t, err, conn.ErrFull)
	expect.Equal(t, changed(t, before, dump(t, s)), "", "what a client may write at will")
}

// A full Redis refuses a claim before its first write, or the claim does all that it does otherwise. The sets that a claim
// corrects first must not decide that.
func TestFullRedisStopsNoClaimHalfWay(t *testing.T) {
	own := redistest.Start(t)
	for name, prepare := range map[string]func(s *redisstate.Store, place string){
		"an id without a task": func(s *redisstate.Store, place string) {
			must(t, s.Conn.Redis.ZAdd(t.Context(), place, redis.Z{Score: 1, Member: "999"}).Err())
			must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.OpenSet("placed"), redis.Z{Score: 1, Member: "999"}).Err())
		},
		"tasks that another program has delayed": func(s *redisstate.Store, place string) {
			for id := 1; id <= 3; id++ {
				must(t, s.Conn.Redis.ZAdd(t.Context(), place, redis.Z{Score: 9e9, Member: id}).Err())
			}
		},
	} {
		claim := func(full string) (before, after string) {
			log, lines := logged()
			s := expect.Result(redisstate.Connect(t.Context(), conntest.Config(t, own.Addr), redistest.Namespace(t), log)).Value(t)
			defer s.Close()
			expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Lease: 60})).OK(t, "reads the memory")
			d := define("x")
			d.Priority = 1
			mustOpen(t, s, d, d, d)
			mustClaim(t, s, 1) // learns the requirement
			prepare(s, s.Keys.OpenSet("default"))
			before = worldOf(t, s)
			must(t, s.Conn.Redis.ConfigSet(t.Context(), "maxmemory", full).Err())
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				select {
				case <-lines: // it says that the claim waits
					stop()
				case <-ctx.Done():
				}
			}()
			_, err := s.Claim(ctx, redisstate.ClaimParams{Worker: "w", Most: 3, Lease: 60})
			must(t, s.Conn.Redis.ConfigSet(t.Context(), "maxmemory", "0").Err())
			if full == "0" {
				must(t, err)
			}
			return before, worldOf(t, s)
		}
		_, whole := claim("0")
		before, after := claim("1")
		if after != before {
			expect.Equal(t, after, whole, name)
		}
	}
}

// If a Store is made while Redis is down, it works as soon as Redis is up. The first calls of the Store wait together
// for one check of the namespace.
func TestNewDoesNotNeedRedis(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	proxy.Refuse()
	log, lines := logged()
	s := expect.Result(redisstate.New(conntest.Config(t, proxy.Addr), redistest.Namespace(t), log)).Value(t)
	t.Cleanup(func() { s.Close() })
	var pings atomic.Int64
	s.Conn.Redis.AddHook(observer(func(c redis.Cmder) {
		if c.Name() == "ping" {
			pings.Add(1)
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Result(s.Now(ctx)).FailsWith(t, context.Canceled, "a call that is cancelled while Redis is down")
	waker := s.WakeServer()
	t.Cleanup(func() { waker.Close() })
	waiting, stop := context.WithCancel(t.Context())
	woken := make(chan bool)
	go func() { woken <- waker.Wait(waiting, ever) }()
	errs := make(chan error)
	for range 5 {
		go func() {
			_, err := s.Open(t.Context(), "manager", define("x"))
			errs <- err
		}()
	}
	<-lines
	stop()
	expect.True(t, !<-woken, "a token arrived while Redis was down")
	proxy.Resume()
	for range 5 {
		must(t, <-errs)
	}
	expect.Equal(t, pings.Load(), 1, "the namespace was checked … times")
	expect.Equal(t, len(mustClaim(t, s, 9)), 5, "tasks")
	mustBeSound(t, s)
}

func TestTheFirstCallRefusesAnotherLayout(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	other := connect(t, redistest.Shared(t), ns)
	must(t, other.Conn.Redis.Set(t.Context(), other.Keys.Schema(), 7, 0).Err())
	s := expect.Result(redisstate.New(conntest.Config(t, redistest.Shared(t)), ns, quiet)).Value(t)
	t.Cleanup(func() { s.Close() })
	before := dump(t, other)
	for name, call := range map[string]func() error{
		"open": func() error { _, err := s.Open(t.Context(), "m", define("x")); return err },
		"read": func() error {
			_, err := s.Read(t.Context(), []int64{1}, redisstate.Want{Fields: redisstate.Rules})
			return err
		},
		"heartbeat": func() error { return s.Presence.ServerHeartbeat(t.Context(), "s", 1e9) },
	} {
		var refused *conn.RefusedError
		err := call()
		expect.MustTrue(t, errors.As(err, &refused), name, err)
		expect.Contains(t, err.Error(), "has layout version 7", name)
	}
	is(t, s, before)
	must(t, other.Conn.Redis.Set(t.Context(), other.Keys.Schema(), conn.Schema, 0).Err())
	expect.Result(s.Open(t.Context(), "m", define("x"))).OK(t, "after the layout was corrected")
}
