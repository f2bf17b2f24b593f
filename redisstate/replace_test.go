package redisstate_test

import (
	"errors"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// When an open task is replaced, nothing of it stays, wherever the task is: in the list, in a place, or waiting for other tasks.
func TestReplacedTasksLeaveNothing(t *testing.T) {
	placed := grouped("g")
	placed.ByGroup, placed.Priority, placed.Unique = true, 3, "k"
	later := grouped("g")
	later.Queue, later.StartAfter, later.Source = "q", 2e9, ""
	for name, d := range map[string]task.Properties{"plain": define("x"), "placed": placed, "later": later} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) {
				mustOpen(t, s, define("other"))
				mustOpen(t, s, placed) // so that the sets of its place stay known
				mustMove(t, s, 2, rules.Replace)
				before := dump(t, s)
				id := mustOpen(t, s, d)[0]
				mustMove(t, s, id, rules.Replace)
				got := dump(t, s)
				for _, key := range []string{"task_id", "requirements", "wake:open", "wake:queue=q;handler=p"} {
					delete(before, key)
					delete(got, key)
				}
				expect.Equal(t, changed(t, before, got), "")
				expect.Len(t, mustClaim(t, s, 9), 1)
				mustBeSound(t, s)
			})
		})
	}
}

// A replaced task and its successor change together, and only if the old task is as it was. A task that others need stays.
func TestReplace(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, grouped("g"), grouped("g"))
	old, claimed := read(t, s, ids[0]), read(t, s, mustClaim(t, s, 1)[0].Task.ID)
	m := expect.Result(rules.Replace(old)).Value(t)
	o := transaction(t, s, []task.Properties{grouped("g")}, m)
	e := new(rules.StateError)
	expect.MustTrue(t, errors.As(o.Err, &e), "a running task", o.Err)
	expect.Equal(t, e.ID, ids[0])
	expect.Equal(t, e.State, task.Running)
	_, err := rules.Replace(claimed)
	expect.True(t, errors.As(err, &e), err)
	m = expect.Result(rules.Replace(read(t, s, ids[1]))).Value(t)
	o = transaction(t, s, []task.Properties{grouped("g")}, m)
	expect.NoError(t, o.Err)
	expect.Equal(t, o.IDs[0], ids[1]+1)
	o = transaction(t, s, []task.Properties{grouped("g")}, m)
	expect.MustTrue(t, errors.As(o.Err, &e), "a task that is gone", o.Err)
	expect.Equal(t, e.State, task.None)
	d := define("x")
	d.After = &task.Dependencies{Tasks: []int64{ids[1] + 1}}
	mustOpen(t, s, d)
	m = expect.Result(rules.Replace(read(t, s, ids[1]+1))).Value(t)
	expect.True(t, transaction(t, s, nil, m).Err != nil, "a task that another one waits for was removed")
	mustBeSound(t, s)
}

// The tasks of a place come by the time from which they can be claimed, and any of those whose time has come is found.
func TestPlaced(t *testing.T) {
	s := newStore(t)
	of := func(start task.Time) task.Properties {
		d := grouped("g")
		d.ByGroup, d.StartAfter, d.Queue, d.Source = true, start, class.TaskStore, ""
		return d
	}
	place := func() string { d := of(0); return d.Place() }()
	now := expect.Result(s.Now(t.Context())).Value(t)
	expect.Result(s.OpenSets.Any(t.Context(), place, now)).Is(t, 0)
	expect.Result(s.OpenSets.HaveTasks(t.Context(), []string{place, "queue=q"})).Is(t, []bool{false, false})
	ids := mustOpen(t, s, of(now+500), of(0), of(now+100), of(0))
	now = expect.Result(s.Now(t.Context())).Value(t)
	expect.Result(s.OpenSets.First(t.Context(), place, 0, 9)).Is(t, []int64{ids[1], ids[3], ids[2], ids[0]})
	expect.Result(s.OpenSets.First(t.Context(), place, now, 9)).Is(t, []int64{ids[1], ids[3]})
	expect.Result(s.OpenSets.First(t.Context(), place, 0, 2)).Is(t, []int64{ids[1], ids[3]})
	expect.Result(s.OpenSets.HaveTasks(t.Context(), []string{place, "queue=q"})).Is(t, []bool{true, false})
	found := map[int64]bool{}
	expect.Eventually(t, "both tasks are found", func() bool {
		found[expect.Result(s.OpenSets.Any(t.Context(), place, now)).Value(t)] = true
		return len(found) == 2
	})
	expect.MustTrue(t, found[ids[1]], found)
	expect.True(t, found[ids[3]], found)
}
