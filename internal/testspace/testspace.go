// Package testspace gives tests a namespace of their own, with a manager, connections, and a way to move tasks.
package testspace

import (
	"log/slog"
	"net"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

// Silent is a log that nobody reads.
var Silent = slog.New(slog.DiscardHandler)

// Config returns the configuration of a manager in a new namespace of the Redis at addr.
func Config(t testing.TB, addr string) config.Manager {
	t.Helper()
	cfg, err := config.DefaultManager(redistest.Namespace(t))
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Redis.Host = host
	if cfg.Redis.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Embedded returns the address of an embedded Redis that ends with the test.
func Embedded(t testing.TB) string {
	t.Helper()
	r, err := embedded.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Addr()
}

// Manager returns a manager that ends with the test.
func Manager(t testing.TB, cfg config.Manager, options ...manager.Option) *manager.Manager {
	t.Helper()
	m, err := manager.New(t.Context(), cfg, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Connect returns a connection of its own to the namespace.
func Connect(t testing.TB, cfg config.Manager) *redisstate.Store {
	t.Helper()
	s, err := redisstate.Connect(t.Context(), cfg.Redis, cfg.Namespace, Silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Client returns a plain client of the Redis.
func Client(t testing.TB, cfg config.Manager) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: cfg.Redis.Addr(), Protocol: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

// Apply makes a move, unless there was an error in deciding it.
func Apply(t testing.TB, s *redisstate.Store, m tdf.Move, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := s.Apply(t.Context(), "w", redisstate.Unit{Moves: []tdf.Move{m}})
	if err != nil || outcomes[0].Err != nil {
		t.Fatal(err, outcomes)
	}
}

// Read reads a task.
func Read(t testing.TB, s *redisstate.Store, id int64) *tdf.Task {
	t.Helper()
	stored, err := s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Whole})
	if err != nil {
		t.Fatal(err)
	}
	return stored.Task
}
