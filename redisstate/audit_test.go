package redisstate_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Check returns one finding for each inconsistent task, and names the problem. Repair repairs the task.
func TestCheckFindsAndRepairRepairs(t *testing.T) {
	s := newStore(t)
	s.Counters.KeepCounts()
	ctx, finds := t.Context(), map[string]int64{}
	zadd := func(list task.State, id int64) {
		s.Conn.Redis.ZAdd(ctx, s.Keys.List(list), redis.Z{Score: 5, Member: id})
	}
	grouped := define("x")
	grouped.Group = "g"
	for _, c := range []struct {
		problem string
		breakIt func() int64
		want    task.State
		find    string // the kind as which the find is counted
	}{
		{"put back as open: out of place", func() int64 {
			id := put(t, s, task.Open)
			s.Conn.Redis.ZRem(ctx, s.Keys.List(task.Open), id)
			return id
		}, task.Open, "lists"},
		{"put back as succeeded: out of place", func() int64 {
			id := put(t, s, task.Succeeded)
			zadd(task.Failed, id)
			return id
		}, task.Succeeded, "lists"},
		{"put back as archived: out of place", func() int64 {
			id := put(t, s, task.Archived)
			s.Conn.Redis.HSet(ctx, s.Keys.Task(id), "state", "executed")
			zadd(task.Executed, id)
			return id
		}, task.Archived, "state"},
		{"an id without a task", func() int64 {
			zadd(task.Expired, 4444)
			return 4444
		}, task.None, "no_task"},
		{"its entry in due is missing or too late", func() int64 {
			id := put(t, s, task.Running)
			s.Conn.Redis.ZRem(ctx, s.Keys.Due(), id)
			return id
		}, task.Running, ""},
		{"the index of its group or queue does not list it as open", func() int64 {
			id := mustOpen(t, s, grouped)[0]
			s.Conn.Redis.ZRem(ctx, s.Keys.Group("g"), id)
			return id
		}, task.Open, "lists"},
		{"the server has not settled it: failed: timeout: ", func() int64 {
			id := mustOpen(t, s, define("x"))[0]
			s.Conn.Redis.HSet(ctx, s.Keys.Task(id), "timeout", "soon")
			return id
		}, task.Failed, ""},
	} {
		id := c.breakIt()
		findings := expect.Result(audit.Of(s).Check(ctx)).Value(t)
		expect.MustLen(t, findings, 1, c.problem)
		expect.MustEqual(t, findings[0].ID, id, c.problem)
		expect.MustTrue(t, strings.HasPrefix(findings[0].Problem, c.problem), c.problem, "findings", findings)
		expect.Result(audit.Of(s).Repair(ctx, "repair", findings)).Is(t, 1, c.problem, "repaired")
		mustBeSound(t, s)
		if c.find != "" {
			expect.True(t, slices.Contains(redisstate.FindKinds, c.find), c.find)
			finds[counts.CountFind+c.find]++
		}
		if c.want != task.None {
			expect.Equal(t, read(t, s, id).State, c.want, c.problem, "its state")
		}
		for _, open := range mustClaim(t, s, 1000) { // finish all tasks, so that they do not affect the next case
			mustExecute(t, s, open, rules.Result{Exit: "0"})
			mustSettle(t, s, open.Task.ID)
		}
	}
	for _, a := range expect.Result(s.Counters.Activity(ctx, &counts.ActivityCounter{}, 1)).Value(t) {
		maps.DeleteFunc(a.Counts, func(name string, _ int64) bool { return !strings.HasPrefix(name, counts.CountFind) })
		expect.Equal(t, a.Counts, finds, a.Queue)
	}
}

// A task that moves from place to place while it is examined twice looks different the second time.
func TestSnapshotsOfPlaces(t *testing.T) {
	s := newStore(t)
	d := define("x")
	d.Queue = "q"
	id := mustOpen(t, s, d)[0]
	var snapshots []string
	for _, place := range []string{read(t, s, id).PlacedIn, task.LimitReason("db") + "\nqueue=q"} {
		s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "limit_key", "db", "place", place)
		s.Conn.Redis.Del(t.Context(), s.Keys.OpenSet(read(t, s, id).PlacedSet()))
		findings := expect.Result(audit.Of(s).Examine(t.Context(), []int64{id})).Value(t)
		expect.MustLen(t, findings, 1, place)
		expect.Equal(t, findings[0].Problem, "its place in the open list does not have it", place)
		snapshots = append(snapshots, findings[0].Snapshot)
	}
	expect.NotEqual(t, snapshots[0], snapshots[1])
}

// A task that is claimed and unclaimed between two examinations looks different the second time.
func TestSnapshotsOfUnclaimedTasks(t *testing.T) {
	s := newStore(t)
	id := mustOpen(t, s, define("x"))[0]
	examined := func() string {
		t.Helper()
		open := s.Keys.List(task.Open)
		score := expect.Result(s.Conn.Redis.ZScore(t.Context(), open, strconv.FormatInt(id, 10)).Result()).Value(t)
		s.Conn.Redis.ZRem(t.Context(), open, id)
		findings := expect.Result(audit.Of(s).Examine(t.Context(), []int64{id})).Value(t)
		expect.MustLen(t, findings, 1)
		s.Conn.Redis.ZAdd(t.Context(), open, redis.Z{Score: score, Member: id})
		return findings[0].Problem + findings[0].Snapshot
	}
	before := examined()
	expect.Equal(t, examined(), before, "without a move")
	m, err := rules.Unclaim(prefetch(t, s, 1, 0)[0].Task, "it stops")
	mustApply(t, s, m, err)
	expect.NotEqual(t, examined(), before)
}

// A task that ran in one round at the first examination and in the next at the second looks different the second time.
func TestSnapshotsOfRounds(t *testing.T) {
	s := newStore(t)
	d := define("x")
	d.Group = "g"
	id := mustOpen(t, s, d)[0]
	var seen []string
	for range 2 {
		round := mustClaim(t, s, 1)[0]
		expect.NoError(t, s.Conn.Redis.ZRem(t.Context(), s.Keys.Group("g"), id).Err())
		findings := expect.Result(audit.Of(s).Examine(t.Context(), []int64{id})).Value(t)
		expect.MustLen(t, findings, 1)
		expect.Equal(t, findings[0].Problem, "the index of its group or queue does not list it as running")
		seen = append(seen, findings[0].Snapshot)
		m, err := rules.Release(round.Task, "it stops")
		mustApply(t, s, m, err)
	}
	expect.NotEqual(t, seen[0], seen[1])
}

// A repair does nothing if the task was claimed and unclaimed after its examination.
func TestRepairAfterAnUnclaim(t *testing.T) {
	s := newStore(t)
	d := define("x")
	d.Group = "g"
	id := mustOpen(t, s, d)[0]
	s.Conn.Redis.ZRem(t.Context(), s.Keys.Group("g"), id)
	findings := expect.Result(audit.Of(s).Examine(t.Context(), []int64{id})).Value(t)
	expect.MustLen(t, findings, 1)
	m, err := rules.Unclaim(prefetch(t, s, 1, 0)[0].Task, "it stops")
	mustApply(t, s, m, err)
	before := read(t, s, id).Log
	expect.Result(audit.Of(s).Repair(t.Context(), "repair", findings)).Is(t, 0)
	expect.Equal(t, read(t, s, id).Log, before)
	mustBeSound(t, s)
}

// A task that leaves its place while it is examined is in order. With a limit, this may happen several times.
func TestExamineATaskThatMoves(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Shared(t), redistest.Namespace(t))
	d := define("x")
	d.Queue = "q"
	id := mustOpen(t, s, d)[0]
	place := s.Keys.OpenSet(read(t, s, id).PlacedSet())
	moved := false
	s.Conn.Redis.AddHook(beforeCommands(func(commands ...redis.Cmder) {
		if !moved && slices.ContainsFunc(commands, func(c redis.Cmder) bool {
			return slices.Contains(c.Args(), any(s.Conn.Script(lua.Located).Hash()))
		}) {
			moved = true
			must(t, s.Conn.Redis.ZRem(t.Context(), place, id).Err())
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "place", "queue=r").Err())
		}
	}))
	expect.Len(t, expect.Result(audit.Of(s).Examine(t.Context(), []int64{id})).Value(t), 0)
	expect.True(t, moved, "the task did not move")
}

// beforeCommands is a hook that calls a function with each command, or those of each pipeline, before they are sent.
type beforeCommands func(commands ...redis.Cmder)

func (b beforeCommands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b beforeCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		b(command)
		return next(ctx, command)
	}
}

func (b beforeCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		b(commands...)
		return next(ctx, commands)
	}
}

func TestCheckReportsMiscountedTasks(t *testing.T) {
	s := newStore(t)
	id := put(t, s, task.Open)
	s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "fails", "4")
	findings := expect.Result(audit.Of(s).Check(t.Context())).Value(t)
	expect.MustLen(t, findings, 1)
	expect.Equal(t, findings[0].Problem, "it is in round 0, but its counters add up to 4")
	expect.Result(audit.Of(s).Repair(t.Context(), "repair", findings)).Is(t, 0, "repaired")
}

// If a task has changed since the check, its repair does nothing.
func TestRepairIsFenced(t *testing.T) {
	s := newStore(t)
	id := put(t, s, task.Open)
	s.Conn.Redis.ZRem(t.Context(), s.Keys.List(task.Open), id)
	findings := expect.Result(audit.Of(s).Check(t.Context())).Value(t)
	s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "state", "running")
	before := dump(t, s)
	expect.Result(audit.Of(s).Repair(t.Context(), "repair", findings)).Is(t, 0, "repaired")
	expect.Equal(t, changed(t, before, dump(t, s)), "")
}

func TestIDsAreFreeOnesEvenWithoutTheCounter(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"), define("c"))
	s.Conn.Redis.Del(t.Context(), s.Keys.TaskID(), s.Keys.Task(1))
	ids := mustOpen(t, s, define("d"), define("e"))
	expect.MustTrue(t, ids[0] > 3, "ids", ids)
	expect.Equal(t, ids[1], ids[0]+1)
}

// If a task's lease was renewed after the check, its repair does nothing.
func TestRenewalVoidsARepair(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("x"))
	c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 1e-6})).Value(t)
	s.Conn.Redis.ZRem(t.Context(), s.Keys.Due(), 1)
	findings := expect.Result(audit.Of(s).Check(t.Context())).Value(t)
	expect.MustLen(t, findings, 1)
	renewed := expect.Result(s.Renew(t.Context(), 60, redisstate.LeaseRenewal{ID: 1, Claim: c.Claims[0].ID})).Value(t)
	expect.NoError(t, renewed.Lost[0])
	expect.Result(audit.Of(s).Repair(t.Context(), "repair", findings)).Is(t, 0, "repaired")
}
