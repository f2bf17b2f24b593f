// Package testspace gives each test its own namespace, with a manager and connections. It also has helpers that move
// and read tasks.
package testspace

import (
	"log/slog"
	"net"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

// Silent is a log that discards everything.
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
	cfg.Redis.Host, cfg.Redis.DB = host, redistest.Database(t)
	if cfg.Redis.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Embedded returns the address of an embedded Redis that stops when the test ends.
func Embedded(t testing.TB) string {
	t.Helper()
	r, err := embedded.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Addr()
}

// Manager returns a manager that is closed when the test ends. The given functions can change the manager's options.
func Manager(t testing.TB, cfg config.Manager, change ...func(*manager.Options)) *manager.Manager {
	t.Helper()
	o := manager.OptionsOf(cfg)
	o.Log = Silent
	for _, c := range change {
		c(&o)
	}
	m, err := manager.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Log returns a function for Manager that sets the log.
func Log(l *slog.Logger) func(*manager.Options) { return func(o *manager.Options) { o.Log = l } }

// Define returns a definition with this program, source and input.
func Define(program, source, input string) manager.Definition {
	return manager.Definition{Program: program, Source: source, Input: input}
}

// Connect returns a new connection to the namespace. It is closed when the test ends.
func Connect(t testing.TB, cfg config.Manager) *redisstate.Store {
	t.Helper()
	s, err := redisstate.Connect(t.Context(), cfg.Redis, cfg.Namespace, Silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Client returns a plain client of the namespace's Redis. It is closed when the test ends.
func Client(t testing.TB, cfg config.Manager) *redis.Client {
	c := redistest.Client(t, redis.Options{Addr: cfg.Redis.Addr(), DB: cfg.Redis.DB})
	return c
}

// Apply applies a Move. The parameters m and err are the results of the function that decided the Move. If err is not
// nil, the test fails.
func Apply(t testing.TB, s *redisstate.Store, m rules.Move, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := s.Apply(t.Context(), "w", redisstate.Unit{Moves: []rules.Move{m}})
	if err != nil || outcomes[0].Err != nil {
		t.Fatal(err, outcomes)
	}
}

// End reports the result of a claim, and settles the task, as a worker and a server do.
func End(t testing.TB, s *redisstate.Store, c redisstate.Claim, r rules.Result) {
	t.Helper()
	move, err := rules.Execute(c.Task, c.ID, r)
	Apply(t, s, move, err)
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if move, ok := rules.Settle(Read(t, s, c.Task.ID), now, nil); ok {
		Apply(t, s, move, nil)
	}
}

// Read reads a whole task.
func Read(t testing.TB, s *redisstate.Store, id int64) *task.Task {
	t.Helper()
	stored, err := s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Whole})
	if err != nil {
		t.Fatal(err)
	}
	return stored.Task
}

// IDs returns the ids of tasks, and returns the error unchanged. Its parameters are the results of Manager.Open.
func IDs(tasks []*manager.Task, err error) ([]int64, error) {
	var ids []int64
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids, err
}

// Tail returns the tail of a round that has printed a text to stdout, and nothing to stderr.
func Tail(stdout string) *task.Tail {
	n := int64(len(stdout))
	return &task.Tail{Text: stdout, TailEnd: task.TailEnd{All: n, Stdout: n}}
}
