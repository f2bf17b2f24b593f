package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

var eventually = expect.Eventually

// startServerAndWorker starts a server, and a worker that executes all open tasks. The worker returns each task's input
// as its output.
func startServerAndWorker(t *testing.T, cfg config.Manager) *redisstate.Store {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	scfg := expect.Result(config.DefaultServer(cfg.Namespace)).Value(t)
	forServer, forWorker := connect(t, cfg), connect(t, cfg)
	go func() {
		defer func() { ended <- struct{}{} }()
		_ = server.New("server", scfg, forServer, silent).Run(ctx)
	}()
	go func() {
		defer func() { ended <- struct{}{} }()
		execute(t, ctx, forWorker)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		<-ended
	})
	return forWorker
}

func execute(t testing.TB, ctx context.Context, s *redisstate.Store) {
	waker := s.WakeWorker(nil, nil)
	defer waker.Close()
	for ctx.Err() == nil {
		claimed, err := s.Claim(ctx, redisstate.ClaimParams{Worker: "w", Most: 100, Lease: 30})
		if ctx.Err() == nil && err != nil {
			t.Error(err)
			return
		}
		var results []rules.Move
		for _, c := range claimed.Claims {
			results = append(results, expect.Result(rules.Execute(c.Task, c.ID, rules.Result{Output: c.Task.Input, Exit: "0"})).Value(t))
		}
		if len(results) > 0 {
			_, err := s.Execute(ctx, "w", results...)
			if err != nil {
				expect.Fails(t, ctx.Err(), "")
			}
		}
		if len(claimed.Claims) == 0 {
			waker.Wait(ctx, time.Hour)
		}
	}
}

// Two managers handle thousands of tasks at the same time. Each task has a follow-up. The callback of each task runs,
// and each follow-up is opened once.
func TestTwoManagersOnRedis(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	startServerAndWorker(t, cfg)
	const many = 1100 // more than a page of ids
	first := newManager(t, cfg, testspace.Log(silent))
	var defs []manager.Definition
	for i := range many {
		d := define("p", source, strconv.Itoa(i))
		d.Group = fmt.Sprint("g", i%2)
		defs = append(defs, d)
	}
	ids := expect.Result(testspace.IDs(first.Open(t.Context(), defs...))).Value(t)
	expect.MustLen(t, ids, many)
	expect.MustTrue(t, slices.IsSorted(ids), "opened", len(ids), "tasks, sorted", slices.IsSorted(ids))
	ended := make(chan error, 2)
	for _, m := range []*manager.Manager{first, newManager(t, cfg, testspace.Log(silent))} {
		go func() { ended <- m.Run(t.Context(), followUp(m)) }()
	}
	expect.NoError(t, errors.Join(<-ended, <-ended))
	checkFollowUps(t, first, many)
}

func followUp(m *manager.Manager) manager.Callbacks {
	return manager.Callbacks{
		Groups: []string{"g0", "g1"},
		Succeeded: func(_ context.Context, one *manager.Finished) error {
			if out := one.Output(); !strings.HasPrefix(out, "after") {
				d := define("p", source, "after "+out)
				d.Group = one.Group
				one.Open(d)
			}
			return nil
		},
	}
}

func checkFollowUps(t *testing.T, m *manager.Manager, many int) {
	t.Helper()
	counts := expect.Result(m.Counts(t.Context(), "g0", "g1")).Value(t)
	expect.MustEqual(t, counts[tdf.Archived], int64(2*many))
	expect.MustEqual(t, counts.Total(), int64(2*many))
	seen := map[string]int{}
	for one, err := range m.List(t.Context(), manager.Query{States: []tdf.State{tdf.Archived}, Read: manager.ReadOutput}) {
		expect.NoError(t, err)
		seen[one.Output()]++
	}
	for i := range many {
		expect.Equal(t, seen[strconv.Itoa(i)], 1, i)
		expect.Equal(t, seen["after "+strconv.Itoa(i)], 1, i)
	}
}

// succeed claims, executes and settles a task, so that it succeeds.
func succeed(t testing.TB, s *redisstate.Store, id int64) {
	t.Helper()
	ctx := t.Context()
	claimed := expect.Result(s.Claim(ctx, redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 30})).Value(t)
	expect.MustLen(t, claimed.Claims, 1)
	expect.MustEqual(t, claimed.Claims[0].Task.ID, id)
	c := claimed.Claims[0]
	m, err := rules.Execute(c.Task, c.ID, rules.Result{Output: "done", Exit: "0"})
	apply(t, s, m, err)
	settle(t, s, id)
}

// While Redis is full, tasks without follow-ups are archived. Callbacks with follow-ups are called again later.
func TestRedisIsFull(t *testing.T) {
	cfg := redisConfig(t, redistest.Start(t).Addr)
	rdb := redistest.Client(t, redis.Options{Addr: cfg.Redis.Addr(), DB: cfg.Redis.DB})
	setMemory := func(most string) {
		err := rdb.ConfigSet(context.Background(), "maxmemory", most).Err()
		expect.True(t, err == nil, err)
	}
	log := &madeRoom{make: func() { setMemory("0") }}
	m := newManager(t, cfg, testspace.Log(slog.New(slog.NewTextHandler(log, nil))))
	s := connect(t, cfg)
	var ids []int64
	for range 2 {
		opened := expect.Result(testspace.IDs(m.Open(t.Context(), define("p", source, "x")))).Value(t)
		succeed(t, s, opened[0])
		ids = append(ids, opened...)
	}
	run(t, m, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, one *manager.Finished) error {
			if one.ID == ids[0] {
				one.Open(define("p", source, "follow-up"))
				if log.Count("redis is full") == 0 {
					setMemory("1")
				}
			}
			return nil
		},
		EndOfRound: func(_ context.Context, s manager.Summary) error {
			if s.Round == 1 {
				expect.Equal(t, s.Archived, 1)
				expect.Equal(t, s.Waiting, 1)
			}
			return nil
		},
		Stop: func(_ context.Context, s manager.Summary) bool { return s.Counts[tdf.Archived] == 2 },
	})
	expect.Equal(t, expect.Result(m.Counts(t.Context())).Value(t)[tdf.Open], 1, "counts")
}

// madeRoom is a log. When it receives the message that Redis is full, it frees memory in Redis.
type madeRoom struct {
	logged
	make func()
}

func (l *madeRoom) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "redis is full") {
		l.make()
	}
	return l.logged.Write(p)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	path := filepath.Join(t.TempDir(), "manager.cfg")
	text := fmt.Sprintf("[redis]\nhost=%s\nport=%d\n[tdf]\nnamespace=%s\n[task_defaults]\nmax_fails=3\n",
		cfg.Redis.Host, cfg.Redis.Port, cfg.Namespace)
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	o := expect.Result(manager.LoadOptions(path)).Value(t)
	o.Log, o.Name, o.Progress = silent, "boss", io.Discard
	m := expect.Result(manager.New(o)).Value(t)
	defer m.Close()
	tasks := expect.Result(m.Open(t.Context(), define("p", source, "x"))).Value(t)
	one, err := m.Get(t.Context(), tasks[0].ID)
	expect.NoError(t, err)
	expect.Equal(t, *one.MaxFails, 3)
	expect.MustLen(t, one.Log, 1)
	expect.Contains(t, one.Log[0], " boss: open")
	_, err = manager.Load(filepath.Join(t.TempDir(), "none.cfg"))
	expect.True(t, errors.As(err, new(*config.Error)), "a file that does not exist", err)
}

func TestOptionsThatAreInvalid(t *testing.T) {
	t.Parallel()
	for _, o := range []manager.Options{{}, {Namespace: "a b"}} {
		m, err := manager.New(o)
		expect.Fails(t, err, "")
		expect.Equal(t, m, nil)
	}
}

// New does not connect. While Redis is down, the first call and later calls wait until their contexts end.
func TestNewDoesNotConnect(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	proxy.Refuse()
	log := &logged{}
	m := newManager(t, redisConfig(t, proxy.Addr), log.option())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 2 {
		go func() {
			_, err := m.Counts(ctx)
			ended <- err
		}()
	}
	eventually(t, "a call waits", func() bool { return log.Count("redis") > 0 })
	cancel()
	for range 2 {
		expect.FailsWith(t, <-ended, context.Canceled, "while Redis is down")
	}
	proxy.Resume()
	expect.NoError(t, m.Connect(t.Context()))
	expect.Result(m.Counts(t.Context())).OK(t)
	m.Close()
	expect.Result(m.Counts(t.Context())).Fails(t, "", "a closed manager counted tasks")
	cfg := redisConfig(t, redistest.Shared(t))
	cfg.Redis.DB = 1_000_000
	e := new(conn.RefusedError)
	expect.True(t, errors.As(newManager(t, cfg).Connect(t.Context()), &e), "Connect accepted a database that does not exist")
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	log := &logged{}
	m := newManager(t, redisConfig(t, redistest.Shared(t)), log.option())
	run(t, m, manager.Callbacks{AllGroups: true, Stop: func(_ context.Context, s manager.Summary) bool { return s.Round == 3 }})
	expect.Equal(t, log.Count("no server was ever seen"), 1, "the log does not say exactly once that there is no server", log.String())
}

// Large inputs and outputs of tasks reach the callbacks over a slow connection, too.
func TestRunOverASlowLink(t *testing.T) {
	t.Parallel() // the test only waits
	cfg := redisConfig(t, redistest.Shared(t))
	startServerAndWorker(t, cfg)
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	far := cfg
	far.Redis = redisConfig(t, proxy.Addr).Redis
	m := newManager(t, far, testspace.Log(silent))
	input := strings.Repeat("x", 100<<10)
	expect.Result(m.Open(t.Context(), define("p", source, input), define("p", source, input))).OK(t)
	proxy.Limit(32 << 10)
	bytes := 0
	err := m.Run(t.Context(), manager.Callbacks{AllGroups: true, Succeeded: func(_ context.Context, t *manager.Finished) error {
		bytes += len(t.Output())
		return nil
	}})
	expect.NoError(t, err, bytes)
	expect.Compare(t, bytes, ">=", 200<<10)
}

// A task that disappears while Run lists it, because it is removed or Redis lost it, is skipped.
func TestAFinishedTaskThatIsMissing(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	ids := expect.Result(testspace.IDs(m.Open(t.Context(), define("p", source, "x")))).Value(t)
	succeed(t, s, ids[0])
	expect.NoError(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(tdf.Succeeded), redis.Z{Score: 1, Member: "99"}).Err())
	called := 0
	run(t, m, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(context.Context, *manager.Finished) error { called++; return nil },
		Stop:      func(_ context.Context, s manager.Summary) bool { return s.Counts[tdf.Archived] == 1 },
	})
	expect.Equal(t, called, 1)
}
