package redisstate_test

import (
	"errors"
	"maps"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// Removing a task removes all its keys and entries, and nothing else.
func TestRemoveLeavesNothing(t *testing.T) {
	s := newStore(t)
	d := define("x")
	d.Group = "g"
	ids := mustOpen(t, s, d, d)
	before := dump(t, s)
	c := mustClaim(t, s, 1)[0]
	_, err := s.Renew(t.Context(), 60, redisstate.LeaseRenewal{
		ID: c.Task.ID, Claim: c.ID, Report: redisstate.LiveReport{Updates: []string{"one"}, FirstUpdate: 1},
	})
	must(t, err)
	must(t, s.Updates.Follow(t.Context(), ids[0]))
	mustMove(t, s, ids[0], rules.Cancel)
	mustMove(t, s, ids[0], rules.Remove)
	want := maps.Clone(before)
	delete(want, "task:1")
	want["open"], want["group:g"] = "2@T", "2@1099511627778"
	got := dump(t, s)
	delete(got, "wake:open")
	delete(want, "wake:open")
	expect.Equal(t, changed(t, want, got), "")
	mustBeSound(t, s)
	expect.Equal(t, mustOpen(t, s, define("y"))[0], 3, "Redis gave out the id … again")
}

// After a task was removed, its worker can no longer renew its lease or report a result.
func TestNothingRevivesARemovedTask(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("x"))
	c := mustClaim(t, s, 1)[0]
	mustMove(t, s, 1, rules.Cancel)
	mustMove(t, s, 1, rules.Remove)
	before := dump(t, s)
	renewed := expect.Result(s.Renew(t.Context(), 60, redisstate.LeaseRenewal{ID: 1, Claim: c.ID})).Value(t)
	expect.Fails(t, renewed.Lost[0], "", "the lease was renewed")
	execute, _ := rules.Execute(c.Task, c.ID, rules.Result{Output: "late", Exit: "0"})
	outcomes := expect.Result(s.Execute(t.Context(), "w", execute)).Value(t)
	expect.Fails(t, outcomes[0].Err, "", "the result was accepted")
	expect.Equal(t, changed(t, before, dump(t, s)), "")
}

// Changing an open task changes only the given properties. The task keeps its place in the queue.
func TestChangeInPlace(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, define("a"), define("b"), define("c"))
	end := task.Time(9e9)
	mustChange(t, s, ids[0], task.Changes{Input: new("changed"), EndBefore: new(end.Std()), MaxFails: new(2), FailOn: new(task.FailOnExit)})
	mustChange(t, s, ids[1], task.Changes{Program: new("q"), Source: new("rsync:/q/run.sh")})
	mustBeSound(t, s)
	expect.Equal(t, inputs(mustClaim(t, s, 3)), "changed b c", "claimed")
	got := read(t, s, ids[0])
	expect.Equal(t, got.EndBefore, end)
	expect.Equal(t, got.MaxFails, 2)
	expect.Equal(t, got.FailOn, task.FailOnExit)
	expect.Equal(t, got.Revision, 1)
	expect.Equal(t, got.Deadline, end)
	if got := read(t, s, ids[1]); got.Program != "q" || got.Source != "rsync:/q/run.sh" || got.Revision != 1 || got.Round != 0 {
		t.Errorf("%+v", got)
	}
}

func TestChangeOfTimes(t *testing.T) {
	s := newStore(t)
	now := expect.Result(s.Now(t.Context())).Value(t)
	later := now.Add(3600)
	d := define("later")
	d.StartAfter, d.FailOn = later, task.FailOnAny
	ids := mustOpen(t, s, d, define("b"), define("c"))
	mustChange(t, s, ids[0], task.Changes{StartAfter: new(task.Time(0).Std()), FailOn: new(task.FailOnStderr)})
	mustChange(t, s, ids[1], task.Changes{StartAfter: new(later.Std())})
	mustBeSound(t, s)
	expect.Equal(t, inputs(mustClaim(t, s, 3)), "later c", "claimed")
	got := s.Conn.Redis.HExists(t.Context(), s.Keys.Task(ids[0]), "fail_on").Val()
	expect.True(t, !got, "the default of fail_on was written")
	c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t)
	expect.Len(t, c.Claims, 0)
	expect.Equal(t, c.Next, later)
}

// If a task was requeued for other workers, its former worker cannot claim it again. Other workers can claim it.
func TestRequeueElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, define("x"))
		claim := func(worker string) int {
			t.Helper()
			c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: worker, Most: 1, Lease: 60})).Value(t)
			return len(c.Claims)
		}
		for _, worker := range []string{"w.1", "w.11"} {
			expect.MustEqual(t, claim(worker), 1, worker, "does not get the task")
			m, err := rules.Requeue(read(t, s, 1), true)
			mustApply(t, s, m, err)
		}
		expect.Equal(t, claim("w.1")+claim("w.11"), 0, "a worker in not_on got the task")
		for _, worker := range []string{"w.", "wx1", "1", "w"} {
			expect.Equal(t, claim(worker), 1, worker, "does not get the task")
			m, err := rules.Requeue(read(t, s, 1), false)
			mustApply(t, s, m, err)
		}
		got := read(t, s, 1)
		expect.Equal(t, got.Releases, 6)
		expect.Len(t, got.NotOn, 2)
		expect.Equal(t, got.Fails+got.Losses+got.Timeouts, 0)
		mustMove(t, s, 1, rules.Cancel)
		mustMove(t, s, 1, rules.Reopen)
		expect.Equal(t, claim("w.1"), 1, "a reopened task still avoids its worker")
		mustBeSound(t, s)
	})
}

// If a worker must not run the first tasks of the queue, the worker can still claim the tasks behind them.
func TestClaimPassesTasksThatMustNotRunHere(t *testing.T) {
	s := newStore(t)
	var all []task.Properties
	for i := range 500 {
		all = append(all, define(strconv.Itoa(i)))
	}
	for _, id := range mustOpen(t, s, all...)[:450] {
		s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "not_on", "v\nw")
	}
	got := 0
	for range 100 { // several claims, because each claim stops after some milliseconds
		c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 10, Lease: 60})).Value(t)
		got += len(c.Claims)
	}
	expect.True(t, got != 0, "no task was claimed")
}

// If two clients change a task at the same time, the second change fails, so that it does not undo the first. The
// second client must read the task again.
func TestConcurrentChangesAreRefused(t *testing.T) {
	s := newStore(t)
	id := mustOpen(t, s, define("a"))[0]
	seen := read(t, s, id)
	first, err := rules.Change(seen, task.Changes{EndBefore: new(task.Time(9e9).Std())})
	second, err2 := rules.Change(seen, task.Changes{Timeout: new(task.Seconds(5).Std())})
	must(t, errors.Join(err, err2))
	mustApply(t, s, first, nil)
	before := dump(t, s)
	outcomes, err := s.Apply(t.Context(), "other", redisstate.Unit{Moves: []rules.Move{second}})
	must(t, err)
	expect.True(t, errors.As(outcomes[0].Err, new(*rules.StateError)), outcomes[0].Err)
	expect.Equal(t, changed(t, before, dump(t, s)), "")
	seen.Revision = 1
	second, err = rules.Change(seen, task.Changes{Timeout: new(task.Seconds(5).Std()), EndBefore: new(task.Time(9e9).Std())})
	mustApply(t, s, second, err)
	mustBeSound(t, s)
	loaded := expect.Result(s.Read(t.Context(), []int64{id}, redisstate.Want{Fields: redisstate.Rules})).Value(t)
	got := loaded[0].Task
	expect.Equal(t, got.Revision, 2)
	expect.Equal(t, got.Timeout, 5)
	expect.Equal(t, got.EndBefore, 9e9)
}

func TestReopenWithChanges(t *testing.T) {
	s := newStore(t)
	id := put(t, s, task.Archived)
	m, err := rules.ReopenWith(read(t, s, id), task.Changes{Program: new("q"), Source: new("rsync:/q/run.sh"), Timeout: new(task.Seconds(5).Std())})
	mustApply(t, s, m, err)
	got := read(t, s, id)
	expect.Equal(t, got.State, task.Open)
	expect.Equal(t, got.Round, 1)
	expect.Equal(t, got.Program, "q")
	expect.Equal(t, got.Timeout, 5)
	expect.Equal(t, got.Reopens, 1)
	expect.Equal(t, got.Revision, 0)
	mustBeSound(t, s)
}

func TestDrain(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		w := presence.WorkerInfo{Name: "w", Host: "h", PID: 5, Lease: 60, State: "working", Slots: 2, Runs: []int64{3, 4}, Version: "v1"}
		expect.True(t, !expect.Result(s.Presence.Drain(t.Context(), "w", "me")).Value(t))
		must(t, took(s.Presence.TakeName(t.Context(), w, presence.PriorOwner{})))
		known := expect.Result(s.Presence.Drain(t.Context(), "w", "me")).Value(t)
		expect.True(t, known, known)
		second := connect(t, s.Conn.Addr, s.Keys.Namespace())
		w.State = "gone"
		expect.Result(s.Presence.WorkerHeartbeat(t.Context(), w)).Is(t, "me")
		w.State = "working"
		by, _, err := second.Presence.TakeName(t.Context(), w, presence.PriorOwner{})
		expect.NoError(t, err, "a new owner of the name is drained by", by)
		expect.Equal(t, by, "me")
		all := expect.Result(s.Presence.Workers(t.Context())).Value(t)
		expect.MustLen(t, all, 1)
		expect.MustEqual(t, all[0].Drained, "me")
		expect.MustEqual(t, all[0].Host, "h")
		expect.MustEqual(t, all[0].PID, 5)
		expect.MustLen(t, all[0].Runs, 2)
		expect.Equal(t, all[0].Slots, 2)
		now := expect.Result(s.Now(t.Context())).Value(t)
		expect.MustTrue(t, all[0].Alive(now), "want the worker to count as alive now, but not after the end of its lease")
		expect.True(t, !all[0].Alive(now.Add(61)), "want the worker to count as alive now, but not after the end of its lease")
		expect.Result(s.Presence.Drain(t.Context(), "w", "")).OK(t)
		expect.Result(second.Presence.WorkerHeartbeat(t.Context(), w)).Is(t, "")
	})
}

// If another program has written odd values, a lease is still renewed.
func TestRenewWithForeignValues(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("x"))
	c := mustClaim(t, s, 1)[0]
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), "deadline", "soon", "lease", "odd").Err())
	must(t, s.Conn.Redis.XAdd(t.Context(), &redis.XAddArgs{Stream: s.Keys.UpdatesPrefix() + "1", Values: []string{"line", "x"}}).Err())
	due := s.Conn.Redis.ZScore(t.Context(), s.Keys.Due(), "1").Val()
	renewed, err := s.Renew(t.Context(), 7200, redisstate.LeaseRenewal{
		ID: 1, Claim: c.ID, Report: redisstate.LiveReport{Updates: []string{"one"}, FirstUpdate: 1},
	})
	must(t, err)
	expect.True(t, renewed.Lost[0] == nil, renewed.Lost[0])
	after := s.Conn.Redis.ZScore(t.Context(), s.Keys.Due(), "1").Val()
	expect.True(t, after != due, "the task is due at", after, "before at", due)
}
