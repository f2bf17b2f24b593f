package redisstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestConnectRefuses(t *testing.T) {
	locked := redistest.Start(t, redistest.Args("--requirepass", "right", "--databases", "4"))
	shared := redistest.Shared(t)
	cli := redis.NewClient(&redis.Options{Addr: shared})
	t.Cleanup(func() { cli.Close() })
	ns := redistest.Namespace(t)
	for _, c := range []struct {
		name  string
		redis func() config.Redis
		ns    string
		setup func(t *testing.T)
		words string
	}{
		{name: "wrong password", words: "the password (or the username) is wrong", redis: func() config.Redis {
			r := redisAt(t, locked.Addr)
			r.Password = "wrong"
			return r
		}},
		{name: "no password", words: "it wants a password", redis: func() config.Redis { return redisAt(t, locked.Addr) }},
		{name: "wrong database", words: "it has no database of that number", redis: func() config.Redis {
			r := redisAt(t, locked.Addr)
			r.Password, r.DB = "right", 7
			return r
		}},
		{name: "not a Redis", words: "what answers there is not a Redis", redis: func() config.Redis { return redisAt(t, chatter(t)) }},
		{
			name: "keys of other types", words: ns + ":open is a string and not a zset", ns: ns, redis: func() config.Redis { return redisAt(t, shared) },
			setup: func(t *testing.T) { cli.Set(t.Context(), ns+":open", "mine", 0) },
		},
		{
			name: "a newer layout", words: "has layout version 7, and this release knows version 1", ns: ns + "-7", redis: func() config.Redis { return redisAt(t, shared) },
			setup: func(t *testing.T) { cli.Set(t.Context(), ns+"-7:schema", 7, 0) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.setup != nil {
				c.setup(t)
			}
			s, err := Connect(t.Context(), c.redis(), cmp.Or(c.ns, "x"), quiet)
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, %v; want %q", s, err, c.words)
			}
		})
	}
}

// chatter is a server that speaks, but not Redis's protocol.
func chatter(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// A Redis that is not there yet is waited for, and that is told.
func TestConnectWaitsForRedis(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	proxy.Refuse()
	log, told := logged()
	done := make(chan error)
	go func() {
		s, err := Connect(t.Context(), redisAt(t, proxy.Addr), redistest.Namespace(t), log)
		if err == nil {
			err = s.Close()
		}
		done <- err
	}()
	if line := <-told; !strings.Contains(line, "connection refused") || !strings.Contains(line, proxy.Addr) {
		t.Errorf("it said %s", line)
	}
	proxy.Resume()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	proxy.Refuse()
	ctx, stop := context.WithCancel(t.Context())
	log, told := logged()
	done := make(chan error)
	go func() {
		_, err := Connect(ctx, redisAt(t, proxy.Addr), redistest.Namespace(t), log)
		done <- err
	}()
	<-told
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// At maxmemory nothing is opened, with clear words; what is there is finished and archived.
func TestFullRedis(t *testing.T) {
	full := redistest.Start(t)
	s := connect(t, full.Addr, redistest.Namespace(t))
	mustOpen(t, s, define("a"), define("b"))
	claims := mustClaim(t, s, 2)
	if err := s.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	before := dump(t, s)
	if ids, err := s.Open(t.Context(), "manager", define("c")); !errors.Is(err, ErrFull) || len(ids) > 0 {
		t.Errorf("opened %v, %v", ids, err)
	}
	if diff := changed(t, before, dump(t, s)); diff != "" {
		t.Error(diff)
	}
	if renewed, err := s.Renew(t.Context(), 60, Renewal{ID: 1, Claim: claims[0].ID, Until: tdf.Never}); err != nil || renewed.Lost[0] != nil {
		t.Errorf("renew: %v, %v", renewed, err)
	}
	mustExecute(t, s, claims[0], tdf.Result{Output: strings.Repeat("x", 1000), Exit: "0"})
	mustSettle(t, s, 1)
	m, err := task(t, s, 1).Archive()
	mustApply(t, s, m, err)
	m, err = task(t, s, 2).Cancel()
	mustApply(t, s, m, err)
	mustBeSound(t, s)
	counts, err := s.Counts(t.Context())
	if err != nil || counts.String() != "expired 1 archived 1" {
		t.Errorf("counted %v, %v", counts, err)
	}
	again := connect(t, full.Addr, s.keys.ns) // a component that is started again
	must(t, again.ServerHeartbeat(t.Context(), "s", 1e9))
	must(t, again.SetGrace(t.Context(), Grace{Running: 2e9}))
	must(t, again.Follow(t.Context(), 2))
	if seen, err := s.LastServerHeartbeat(t.Context()); seen != 1e9 || err != nil {
		t.Errorf("a server was seen at %v, %v", seen, err)
	}
	if grace, err := s.Grace(t.Context()); grace.Running != 2e9 || err != nil {
		t.Errorf("a grace period until %v, %v", grace, err)
	}
	if left := s.rdb.TTL(t.Context(), s.keys.followPrefix()+"2").Val(); left <= 0 || left > followLife {
		t.Errorf("somebody follows for %v", left)
	}
	if err := took(again.TakeName(t.Context(), WorkerInfo{Name: "w"}, PriorOwner{})); err != nil {
		t.Error(err)
	}
	if err := again.ManagerHeartbeat(t.Context(), 1e9, 5); err != nil {
		t.Error(err)
	}
}
