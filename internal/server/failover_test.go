package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// The slot of the namespace moves between nodes of a Redis Cluster under load, twice. Nothing is lost or inconsistent.
func TestMovedSlot(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	f := newFailover(t, config.Redis{Cluster: c.Addrs()[5:]}) // the client learns the addresses of the others
	stop := f.load()
	moved := 0
	for range 2 {
		f.progress("before the slot moves")
		moved += c.Move(f.store.Keys.Schema(), c.Other(f.store.Keys.Schema()))
	}
	f.progress("after the slot has moved")
	stop()
	expect.Equal(t, f.drain(), 0, "lost tasks")
	t.Logf("of %d tasks whose open returned, none was lost; keys moved: %d; reports refused: %d", len(f.opened), moved,
		f.refused.Load())
}

// The primary that owns the slot of the namespace is killed under load, and its replica is promoted. If one replica must
// confirm writes, no task whose open returned is lost.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	f := newFailover(t, config.Redis{Cluster: c.Addrs(), Replicas: config.Replicas{Wanted: 1}})
	stop := f.load()
	owner := func() *redistest.Server { return c.Owner(f.store.Keys.Schema()) }
	old := owner()
	f.progress("at the start")
	c.Promote()
	old.Kill()
	expect.Eventually(t, "the replica is promoted", func() bool { return owner() != old })
	old.Restart() // it becomes the replica
	f.progress("after the primary was killed")
	c.Settle() // a slow machine must not lose what is checked below
	stop()
	expect.Equal(t, f.drain(), 0, "lost tasks")
	t.Logf("of %d tasks whose open returned, none was lost; reports refused: %d", len(f.opened), f.refused.Load())
}

// drain waits until all tasks are archived, and checks them. It returns the number of the lost tasks.
func (f *failover) drain() (lost int) {
	t := f.T
	t.Helper()
	expect.Eventually(t, "all tasks are archived", func() bool {
		c := expect.Result(f.store.Counts(t.Context())).Value(t)
		return c.Unfinished() == 0 && c[task.Succeeded]+c[task.Failed] == 0
	}, func() any {
		return []any{
			expect.Result(f.store.Counts(t.Context())).Value(t), expect.Result(audit.Of(f.store).Check(t.Context())).Value(t),
			f.store.Conn.Outages(),
		}
	})
	f.end()
	expect.Len(t, expect.Result(audit.Of(f.store).Check(t.Context())).Value(t), 0, "inconsistent tasks")
	for id, input := range f.opened {
		found, err := f.store.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Whole})
		if err != nil {
			lost++
			continue
		}
		one := found.Task
		expect.Equal(t, one.State, task.Archived, id)
		expect.Equal(t, one.Input, input, id)
		if one.Outcome == string(task.Succeeded) {
			expect.Equal(t, one.Rounds[one.Round].Output, input, id)
		}
	}
	return lost
}

// A failover is a namespace under load, whose primary changes.
type failover struct {
	*testing.T
	redis config.Redis
	ns    string
	store *redisstate.Store

	refused  atomic.Int64 // reports
	archived atomic.Int64
	mu       sync.Mutex
	opened   map[int64]string // the inputs of the tasks whose open returned
	ctx      context.Context  // of all but the calls that open tasks
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

func newFailover(t *testing.T, at config.Redis) *failover {
	t.Helper()
	f := &failover{T: t, redis: at, ns: redistest.Namespace(t), opened: map[int64]string{}}
	f.store = f.connect()
	f.ctx, f.cancel = context.WithCancel(t.Context())
	return f
}

func (f *failover) connect() *redisstate.Store {
	f.Helper()
	s := expect.Result(redisstate.Connect(f.Context(), f.redis, f.ns, quiet())).Value(f)
	f.Cleanup(func() { s.Close() })
	return s
}

// load starts the clients. The returned function ends those that open tasks.
func (f *failover) load() (stop func()) {
	opening, cancel := context.WithCancel(f.Context())
	var openers sync.WaitGroup
	for i := range 2 {
		s := f.connect()
		openers.Go(func() { f.open(opening, s, fmt.Sprintf("opener%d", i)) })
		w := f.connect()
		f.done.Go(func() { f.work(w, fmt.Sprintf("w%d", i)) })
	}
	server := New("server", config.Server{OutageGrace: 1}, f.connect(), quiet())
	f.done.Go(func() {
		for f.ctx.Err() == nil {
			_, err := server.RunOnce(f.ctx)
			f.check(err, "a round of the server")
		}
	})
	m := expect.Result(manager.New(manager.Options{Namespace: f.ns, Redis: f.redis, Log: quiet()})).Value(f)
	f.Cleanup(func() { m.Close() })
	f.done.Go(func() {
		f.check(m.Run(f.ctx, manager.Callbacks{
			AllGroups: true,
			Succeeded: func(context.Context, *manager.Finished) error { f.archived.Add(1); return nil },
			Stop:      func(context.Context, manager.Summary) bool { return false },
		}), "run callbacks")
	})
	return func() { cancel(); openers.Wait() }
}

func (f *failover) check(err error, doing string) {
	if err != nil && f.ctx.Err() == nil {
		f.Errorf("%s: %v", doing, err)
	}
}

func (f *failover) end() {
	f.cancel()
	f.done.Wait()
}

func (f *failover) open(ctx context.Context, s *redisstate.Store, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		d := define()
		d.Input = fmt.Sprintf("%s-%d", name, n)
		d.MaxLosses = 1000
		ids, err := s.Open(ctx, name, d, d)
		if ctx.Err() != nil {
			return
		}
		f.check(err, "open")
		f.mu.Lock()
		for _, id := range ids {
			if f.opened[id] != "" {
				f.Errorf("id %d was given out for %s and for %s", id, f.opened[id], d.Input)
			}
			f.opened[id] = d.Input
		}
		f.mu.Unlock()
	}
}

// work claims tasks with a short lease, and reports their inputs as outputs. Redis may refuse a report: its claim may
// be lost.
func (f *failover) work(s *redisstate.Store, name string) {
	for f.ctx.Err() == nil {
		c, err := s.Claim(f.ctx, redisstate.ClaimParams{Worker: name, Most: 10, Lease: 1})
		f.check(err, "claim")
		var moves []rules.Move
		for _, claim := range c.Claims {
			m, err := rules.Execute(claim.Task, claim.ID, rules.Result{Output: claim.Task.Input, Exit: "0"})
			f.check(err, "decide")
			moves = append(moves, m)
		}
		outcomes, err := s.Execute(f.ctx, name, moves...)
		f.check(err, "report")
		for _, o := range outcomes {
			if o.Err != nil {
				f.refused.Add(1)
			}
		}
	}
}

// progress waits until more tasks are opened and archived.
func (f *failover) progress(when string) {
	f.Helper()
	count := func() (opened, archived int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.opened), int(f.archived.Load())
	}
	opened, archived := count()
	expect.Eventually(f, "progress "+when, func() bool {
		o, a := count()
		return o >= opened+50 && a >= archived+50
	})
}
