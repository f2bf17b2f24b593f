package manager_test

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/periodics"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A pair is a primary with one replica, and a configuration whose writes the replica must confirm.
type pair struct {
	cfg              config.Manager
	primary, replica *redistest.Server
}

func newPair(t *testing.T) *pair {
	p := &pair{primary: redistest.Start(t, redistest.Replicates), replica: redistest.Start(t)}
	p.cfg = redisConfig(t, p.primary.Addr)
	p.replica.Follow(p.primary)
	return p
}

// waits returns a manager whose writes a number of replicas must confirm. It waits for them as long as it may if they
// are there, and briefly if they are away.
func (p *pair) waits(t *testing.T, wanted int, there bool) *manager.Manager {
	cfg := p.cfg
	cfg.Redis.Replicas = config.Replicas{Wanted: wanted, Timeout: 4 * time.Second}
	if !there {
		cfg.Redis.Replicas.Timeout = 20 * time.Millisecond
	}
	return testspace.Manager(t, cfg)
}

// Without its replica, a call that opens or changes tasks says that its outcome is unknown. It has happened once,
// however many callers share a call. If the same request is repeated when the replica is back, it is confirmed.
func TestUnconfirmedWrites(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	patient, m, ctx := p.waits(t, 1, true), p.waits(t, 1, false), t.Context()
	first := expect.Result(patient.Open(ctx, define("p", source, ""))).Value(t)[0]
	p.replica.Follow(nil)
	unknown := func(err error, what string) {
		t.Helper()
		expect.Equal(t, tdf.CodeOf(err), tdf.CodeUnknown, what)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := m.Open(ctx, define("p", source, ""))
			unknown(err, "open")
		})
	}
	all.Wait()
	for range 2 {
		_, err := m.OpenOnce(ctx, "key", define("p", source, ""))
		unknown(err, "open once")
	}
	cancelled, err := m.Cancel(ctx, first.Ref())
	unknown(err, "cancel")
	expect.Len(t, cancelled.Skipped, 0)
	expect.Equal(t, expect.Result(m.Counts(ctx)).Value(t).String(), "open 21 expired 1")
	p.replica.Follow(p.primary)
	again := expect.Result(patient.OpenOnce(ctx, "key", define("p", source, ""))).Value(t)
	expect.Equal(t, again[0].ID, int64(22))
	expect.Equal(t, expect.Result(m.Counts(ctx)).Value(t).Total(), 22)
	p.replica.Follow(nil)
	_, port, _ := net.SplitHostPort(p.replica.Addr)
	p.cfg.Redis.Port, _ = strconv.Atoi(port)
	expect.Result(testspace.Manager(t, p.cfg).Get(ctx, 22)).OK(t)
}

// A call may ask for replicas itself. It cannot ask for fewer than the configuration.
func TestReplicasOfACall(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, err := p.waits(t, 1, false).Open(manager.WithReplicas(t.Context(), 2), define("p", source, ""))
	expect.Fails(t, err, "of 2 replicas")
	m := p.waits(t, 0, false)
	expect.Result(p.waits(t, 0, true).Open(manager.WithReplicas(t.Context(), 1), define("p", source, ""))).OK(t)
	p.replica.Follow(nil)
	_, err = m.Open(manager.WithReplicas(t.Context(), 1), define("p", source, ""))
	expect.Equal(t, tdf.CodeOf(err), tdf.CodeUnknown)
	expect.Result(m.Open(t.Context(), define("p", source, ""))).OK(t)
}

// A worker and the callbacks of a manager wait until the replica is back, as after an outage.
func TestRepeatedUntilConfirmed(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	m, log := p.waits(t, 0, true), &logged{}
	p.cfg.Redis.Replicas = config.Replicas{Wanted: 1, Timeout: 100 * time.Millisecond}
	worker := expect.Result(redisstate.Connect(t.Context(), p.cfg.Redis, p.cfg.Namespace, log.logger())).Value(t)
	t.Cleanup(func() { worker.Close() })
	d := define("p", source, "")
	d.Group = "g"
	expect.Result(m.Open(t.Context(), d)).OK(t)
	claim := expect.Result(worker.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 600})).Value(t).Claims[0]
	p.replica.Follow(nil)
	done := make(chan error)
	go func() {
		stored, err := worker.ReadOne(context.Background(), claim.Task.ID, redisstate.Want{Fields: redisstate.Whole})
		if err == nil {
			move, _ := rules.Execute(stored.Task, claim.ID, rules.Result{Exit: "0"})
			_, err = worker.Execute(context.Background(), "w", move)
		}
		done <- err
	}()
	expect.Eventually(t, "the worker waits", func() bool { return log.Count("too few replicas confirm") > 0 })
	p.replica.Follow(p.primary)
	expect.NoError(t, <-done)
	expect.Compare(t, worker.Conn.Unconfirmed(), ">", 0)

	d.Group = "h"
	cancelled := expect.Result(m.Open(t.Context(), d)).Value(t)[0]
	expect.Result(m.Cancel(t.Context(), cancelled.Ref())).OK(t)
	p.replica.Follow(nil)
	lines, called := &logged{}, 0
	runs := testspace.Manager(t, p.cfg, lines.option())
	go func() {
		done <- runs.Run(context.Background(), manager.Callbacks{
			Groups: []string{"h"}, Expired: func(context.Context, *manager.Finished) error { called++; return nil },
		})
	}()
	expect.Eventually(t, "Run waits", func() bool { return lines.Count("too few replicas confirm") > 0 })
	p.replica.Follow(p.primary)
	expect.NoError(t, <-done)
	expect.Equal(t, called, 1)
}

// Without its replica, each change that a call acknowledges is unknown, and made: also one that a full Redis accepts.
func TestEveryChangeIsConfirmed(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	patient, m, ctx := p.waits(t, 1, true), p.waits(t, 1, false), t.Context()
	free := define("p", source, "")
	d := free
	d.Group = "g"
	tasks := expect.Result(patient.Open(ctx, d, d, d)).Value(t)
	expect.Result(patient.Cancel(ctx, tasks[1].Ref(), tasks[2].Ref())).OK(t)
	store, pause := managing.Of(m).Store, tdf.Pausable{Queue: "q"}
	expect.Result(store.Presence.WorkerHeartbeat(ctx, presence.WorkerInfo{Name: "w"})).OK(t)
	p.replica.Follow(nil)
	periodic := manager.Periodic{Name: "n", Schedule: "@daily", Tasks: []manager.Definition{d}}
	a := admin.New(m)
	for what, change := range map[string]func() error{
		"open":          func() error { _, err := m.Open(ctx, free); return err },
		"a transaction": func() error { x := m.Transaction(); x.Open(free); _, err := x.Commit(ctx); return err },
		"update":        func() error { _, err := m.Update(ctx, manager.Changes{Priority: new(7)}, tasks[0].Ref()); return err },
		"remove":        func() error { _, err := m.Remove(ctx, tasks[1].Ref()); return err },
		"retry":         func() error { _, err := m.Retry(ctx, manager.Changes{}, tasks[2].Ref()); return err },
		"close":         func() error { return m.CloseGroup(ctx, "g") },
		"pause":         func() error { return m.Pauses().Begin(ctx, pause) },
		"resume":        func() error { return m.Pauses().End(ctx, pause) },
		"limit":         func() error { return m.Limits().Set(ctx, "k", tdf.Limit{AtMost: 1}) },
		"no limit":      func() error { return m.Limits().Remove(ctx, "k") },
		"periodic":      func() error { return m.Periodics().Set(ctx, periodic) },
		"periodic rm":   func() error { return periodics.Of(store).RemovePeriodic(ctx, "n") },
		"push":          func() error { _, err := store.Programs.PutProgram(ctx, []byte("x")); return err },
		"owner":         func() error { return store.Programs.OwnProgram(ctx, "x", "t") },
		"programs rm":   func() error { _, err := store.Programs.RemoveProgram(ctx, "x", 1, 99); return err },
		"setting":       func() error { return a.ChangeSetting(ctx, "max_tasks", "9") },
		"drain":         func() error { return a.Drain(ctx, "w") },
		"token rm":      func() error { return store.Accounts.RemoveToken(ctx, "t") },
		"logout":        func() error { return store.Accounts.RemoveSession(ctx, "h", "d") },
		"callbacks":     func() error { return m.RetryCallbacks(ctx, 1) },
	} {
		if what == "token rm" {
			_, err := a.AddToken(ctx, access.Token{Name: "t", Role: access.Operator})
			expect.Equal(t, tdf.CodeOf(err), tdf.CodeUnknown, "token add")
		}
		expect.Equal(t, tdf.CodeOf(change()), tdf.CodeUnknown, what)
	}
	expect.Fails(t, m.CloseGroup(ctx, "none"), "no tasks") // a refusal is known
}

// Concurrent changes travel in common calls. Each call of WithReplicas waits for its replicas all the same.
func TestReplicasOfConcurrentChanges(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.replica.Follow(nil)
	m, ctx := p.waits(t, 0, false), t.Context()
	tasks := expect.Result(m.Open(ctx, slices.Repeat([]manager.Definition{define("p", source, "")}, 200)...)).Value(t)
	var all sync.WaitGroup
	for i, one := range tasks {
		all.Go(func() {
			if i%4 > 0 {
				expect.Result(m.Cancel(ctx, one.Ref())).OK(t)
				return
			}
			done, err := m.Cancel(manager.WithReplicas(ctx, 1), one.Ref())
			expect.Equal(t, tdf.CodeOf(err), tdf.CodeUnknown)
			expect.Equal(t, done.Done, 1)
		})
	}
	all.Wait()
}
