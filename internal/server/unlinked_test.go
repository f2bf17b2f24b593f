package server

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// failAll claims, executes and fails open tasks, without the server.
func (s *site) failAll(ids []int64) {
	s.Helper()
	var moves []rules.Move
	for len(moves) < len(ids) {
		c := expect.Result(s.store.Claim(s.Context(), redisstate.ClaimParams{Worker: "w", Most: 500, Lease: 60})).Value(s)
		for _, claim := range c.Claims {
			m := expect.Result(rules.Execute(claim.Task, claim.ID, rules.Result{Output: "out", Error: "no", Exit: "1"})).Value(s)
			moves = append(moves, m)
		}
	}
	expect.Result(s.store.Execute(s.Context(), "w", moves...)).OK(s)
	stored := expect.Result(s.store.Read(s.Context(), ids, redisstate.Want{Fields: redisstate.Rules})).Value(s)
	now := s.now()
	var units []redisstate.Unit
	for _, t := range stored {
		m, _ := rules.Settle(t.Task, now, nil)
		units = append(units, redisstate.Unit{Moves: []rules.Move{m}})
	}
	expect.Result(s.store.Apply(s.Context(), "server", units...)).OK(s)
}

// More tasks and outputs than one batch are due for removal when tasks begin to wait for them. None of them is removed.
func TestNothingIsRemovedBeforeTasksAreLinked(t *testing.T) {
	t.Parallel()
	const n = batchSize + 10
	onEach(t, func(s *site) {
		removed, emptied := inGroup("g"), define()
		removed.KeepFinished, emptied.KeepOutputs = 1e-6, 1e-6
		ids := s.open(slices.Concat(slices.Repeat([]task.Properties{removed}, n), slices.Repeat([]task.Properties{emptied}, n))...)
		s.failAll(ids)
		loose, group := afterAny(ids...), define()
		group.After = &task.Dependencies{Group: "g"}
		waiting := s.open(loose, group)
		s.settle()
		stored := expect.Result(s.store.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Whole})).Value(t)
		for _, x := range stored {
			expect.MustTrue(t, x.Task != nil, "task", x.ID, x.Task)
			expect.MustEqual(t, x.Task.Current().Output, "out", "task", x.ID)
		}
		expect.NoError(t, s.store.Groups.CloseGroup(t.Context(), "g"))
		expect.Equal(t, fmt.Sprint(s.runAll()), fmt.Sprint(waiting[:1]))
		expect.Contains(t, s.mustBe(waiting[1], task.Failed, 0).LastError(), fmt.Sprintf("%d tasks did not succeed", n))
		s.do("ZADD", "$due", 1, ids[0])
		s.settle()
		expect.True(t, s.isGone(ids[0]), "a task that nobody needs any more stays")
	})
}

// A streamStore opens a waiting task after each page of waiting tasks that the server has linked.
type streamStore struct {
	Store
	site *site
}

func (s *streamStore) LinkWaiting(ctx context.Context) (int, error) {
	defer func() { s.site.open(after(2)) }()
	return s.Store.LinkWaiting(ctx)
}

// New waiting tasks do not stop the removal of tasks that they do not need.
func TestNewWaitingTasksStopNoRemoval(t *testing.T) {
	s := newSite(t)
	d := define()
	d.KeepFinished = 1e-6
	s.failAll(s.open(d))
	s.open(define())
	s.server.store = &streamStore{StoreOf(s.store), s}
	s.round()
	expect.True(t, s.isGone(1), "task 1 is still there")
}

// A task that waits for itself fails. Its id can be guessed.
func TestATaskCannotWaitForItself(t *testing.T) {
	s := newSite(t)
	s.open(after(1), afterAny(2))
	s.settle()
	for id := int64(1); id <= 2; id++ {
		expect.Contains(t, s.mustBe(id, task.Failed, 0).LastError(), fmt.Sprintf("task %d would wait for itself", id))
	}
	s.nothingLeft()
}

// Tasks that were removed before a task begins to wait for their group do not count.
func TestFailedTasksOfAGroupThatWereRemoved(t *testing.T) {
	s := newSite(t)
	failed := inGroup("g")
	failed.KeepFinished = 1e-6
	s.failAll(s.open(failed))
	s.settle()
	s.open(inGroup("g"))
	expect.NoError(t, s.store.Groups.CloseGroup(t.Context(), "g"))
	group := define()
	group.After = &task.Dependencies{Group: "g"}
	s.open(group)
	expect.Equal(t, fmt.Sprint(s.runAll()), "[2 3]")
}

// Another program changes what TDF notes about tasks that must be linked.
func TestForeignMembersOfUnlinked(t *testing.T) {
	s := newSite(t)
	d := define()
	d.KeepFinished = 1e-6
	s.open(define(), d)
	s.open(after(1))
	s.do("ZADD", "$unlinked", 0, "x", 0, 99, 0, "-1", 0, 2) // task 2 does not wait
	s.do("ZREM", "$unlinked", 3)
	s.settle()
	expect.Equal(t, fmt.Sprint(s.do("ZCARD", "$unlinked")), "0", "members are left")
	findings := expect.Result(audit.Of(s.store).Check(t.Context())).Value(t)
	expect.MustLen(t, findings, 1)
	expect.MustEqual(t, findings[0].ID, 3)
	expect.MustEqual(t, expect.Result(audit.Of(s.store).Repair(t.Context(), "server", findings)).Value(t), 1)
	ran := s.runAll()
	expect.Equal(t, fmt.Sprint(ran), "[1 2 3]")
	expect.True(t, s.isGone(2), ran)
	s.nothingLeft()
}

// A beatStore counts heartbeats. In its test, the server's clock runs so fast that a
// heartbeat is due after a few calls to Redis.
type beatStore struct {
	Store
	beats int
}

func (s *beatStore) ServerHeartbeat(ctx context.Context, name string, now task.Time) error {
	s.beats++
	return s.Store.ServerHeartbeat(ctx, name, now)
}

// However slow Redis is, the server sends heartbeats during each part of its work.
func TestHeartbeatsDuringTheWork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var all []task.Properties
	for range 60 {
		all = append(all, inGroup("g"))
	}
	ids := s.open(all...)
	for range 3 {
		s.open(slices.Repeat([]task.Properties{after(ids...)}, 200)...)
	}
	expect.NoError(t, s.store.Groups.CloseGroup(t.Context(), "g"))
	work := map[string]func(ctx context.Context) error{
		"link":   func(ctx context.Context) error { _, err := s.server.link(ctx); return err },
		"audit":  func(ctx context.Context) error { _, err := s.server.runAudit(ctx, s.now()); return err },
		"look":   func(ctx context.Context) error { _, err := s.server.handleLinks(ctx, true); return err },
		"settle": func(ctx context.Context) error { _, err := s.server.settleDue(ctx); return err },
		"end": func(ctx context.Context) error {
			s.failAll(ids)
			_, err := dependencies.Of(s.store).HandleEndings(ctx)
			return err
		},
	}
	read := 0
	s.server.clock = func() (at time.Time) {
		read++
		return time.Unix(0, 0).Add(time.Duration(read) * heartbeatPause / 2)
	}
	for _, name := range []string{"link", "settle", "audit", "look", "end"} {
		slow, before := &beatStore{Store: StoreOf(s.store)}, read
		s.server.store = slow
		expect.NoError(t, work[name](s.server.beating(t.Context())))
		expect.NotEqual(t, slow.beats, 0, name)
		expect.Compare(t, read-before, "<=", 8*slow.beats, name)
	}
}
