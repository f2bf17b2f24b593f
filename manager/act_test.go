package manager_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// Each action moves the tasks whose states allow the action, and skips the others.
func TestActions(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ids := open(t, m, "ok", "ok", "ok")
	check := func(name string, done int, skipped string) func(manager.Result, error) {
		return func(result manager.Result, err error) {
			t.Helper()
			text := fmt.Sprint(result.Skipped)
			expect.NoError(t, err, name, done, "[", skipped, "]")
			expect.Equal(t, result.Done, done, name, skipped, "]")
			expect.Equal(t, text, "["+skipped+"]", name, done, "[", skipped, "]")
		}
	}
	of := manager.ByIDs
	check("update", 2, "")(m.Update(ctx, manager.Changes{Input: new("other")}, of(ids[0], ids[1], ids[0])...))
	check("update again", 0, "change task 1: it already has these values")(m.Update(ctx, manager.Changes{Input: new("other")}, of(ids[0])...))
	check("invalid", 0, "change task 1: input: a quote is not closed")(m.Update(ctx, manager.Changes{Input: new("'")}, of(ids[0])...))
	got := tm.Tasks()[0]
	expect.Equal(t, got.Input, "other")
	expect.Equal(t, got.Revision, 1)
	expect.Equal(t, got.State, tdf.Open)
	check("remove", 0, "remove task 1: it is open in round 0")(m.Remove(ctx, of(ids[0])...))
	check("requeue", 0, "release task 1: it is open in round 0")(m.Requeue(ctx, of(ids[0])...))
	check("requeue elsewhere", 0, "release task 1: it is open in round 0")(m.RequeueElsewhere(ctx, of(ids[0])...))
	check("cancel", 3, "")(m.Cancel(ctx, of(ids...)...))
	check("archive", 1, "archive task 9: there is no such task")(m.Archive(ctx, of(ids[2], 9)...))
	check("retry", 2, "")(m.Retry(ctx, manager.Changes{Program: new("q"), Source: new("rsync:/q/run.sh")}, of(ids[0], ids[2])...))
	if got := tm.Tasks()[2]; got.Program != "q" || got.Round != 1 || got.Input != "ok" {
		t.Errorf("%+v", got)
	}
	check("remove", 1, "")(m.Remove(ctx, of(ids[1])...))
	expect.Equal(t, len(tm.Tasks()), 2, "tasks are left")
}

// Retry and the methods that open tasks refuse a task that would expire at once.
func TestNeedsTime(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ref := manager.ByIDs(open(t, m, "ok")...)[0]
	now := tm.Now()
	expect.MustEqual(t, expect.Result(m.Update(ctx, manager.Changes{EndBefore: &now}, ref)).Value(t).Done, 1)
	expect.Result(m.Cancel(ctx, ref)).OK(t)
	for _, end := range []*time.Time{nil, new(now.Add(-time.Second))} {
		result := expect.Result(m.Retry(ctx, manager.Changes{EndBefore: end}, ref)).Value(t)
		expect.Equal(t, result.Done, 0)
		expect.MustLen(t, result.Skipped, 1)
		expect.FailsWith(t, result.Skipped[0], manager.ErrPast)
	}
	later := now.Add(time.Second)
	result, err := m.Retry(ctx, manager.Changes{EndBefore: &later}, ref)
	got := tm.Tasks()[0]
	expect.NoError(t, err)
	expect.Equal(t, result.Done, 1)
	expect.Equal(t, got.State, tdf.Open)
	expect.True(t, got.EndBefore.Equal(later), result, err, got.State, "until", got.EndBefore)
	past := define("p", source, "")
	past.Group, past.EndBefore = "new", now
	step := m.Transaction()
	step.Open(past)
	expect.Result(m.Open(ctx, past)).FailsWith(t, manager.ErrPast)
	expect.Result(m.OpenOnce(ctx, "key", past)).FailsWith(t, manager.ErrPast)
	expect.Result(m.OpenGroup(ctx, past)).FailsWith(t, manager.ErrPast)
	expect.Result(managing.Of(m).OpenFirst(ctx, past)).FailsWith(t, manager.ErrPast)
	expect.Result(step.Commit(ctx)).FailsWith(t, manager.ErrPast)
	expect.Len(t, tm.Tasks(), 1)
	d := define("p", source, "")
	d.Group = "taken"
	expect.Result(m.Open(ctx, d)).OK(t)
	past.Group = "taken" // a manager that is restarted later
	expect.Result(m.OpenGroup(ctx, past)).FailsWith(t, manager.ErrGroupTaken)
}

// CancelOpen cancels all open tasks of a group, and no others, even if one page cannot contain all of them.
func TestCancelOpen(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg)
	const many = 1100
	d, other := define("p", source, "x"), define("p", source, "x")
	d.Group, other.Group = "g", "h"
	expect.Result(m.Open(t.Context(), append(slices.Repeat([]manager.Definition{d}, many), other)...)).OK(t)
	expect.Result(connect(t, cfg).Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 5, Lease: 60})).OK(t)
	for _, c := range []struct {
		group string
		want  int
	}{{"unused", 0}, {"g", many - 5}, {"g", 0}, {"", 1}, {"", 0}} {
		expect.Result(m.CancelOpen(t.Context(), c.group)).Is(t, c.want, "group", c.group, "cancelled")
	}
}

// If a task is not in the round of its Ref, an action skips the task.
func TestActionsOnTasksThatMoved(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ids := open(t, m, "ok", "ok")
	expect.Result(m.Cancel(ctx, manager.ByIDs(ids...)...)).OK(t)
	seen := tm.Tasks()[0].Ref()
	expect.Equal(t, expect.Result(m.Retry(ctx, manager.Changes{}, seen, seen)).Value(t).Done, 1)
	if _, err := m.Cancel(ctx, manager.ByIDs(ids[0])...); err != nil { // cancels the task in its second round
		t.Fatal(err)
	}
	result, err := m.Retry(ctx, manager.Changes{}, seen)
	text := fmt.Sprint(result.Skipped)
	expect.NoError(t, err)
	expect.Equal(t, result.Done, 0)
	expect.Equal(t, text, "[reopen task 1: it is expired in round 1]")
}

func TestGetAndCounts(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ids := open(t, m, "a", "b", "c")
	expect.Result(m.Get(ctx, 9)).FailsWith(t, tdf.ErrNoTask, "task 9")
	expect.Equal(t, expect.Result(m.Get(ctx, ids[1])).Value(t).Input, "b", "task 2")
	counts := expect.Result(m.Counts(ctx)).Value(t)
	expect.Equal(t, counts[tdf.Open], 3)
	expect.Equal(t, counts.Total(), 3)
	expect.Result(m.Counts(ctx, "a", "")).Fails(t, "", "a group named \"\" was counted")
}
