package redisstate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// transaction carries out one unit.
func transaction(t *testing.T, s *redisstate.Store, open []task.Properties, moves ...rules.Move) redisstate.Outcome {
	t.Helper()
	outcomes := expect.Result(s.Apply(t.Context(), "test", redisstate.Unit{Moves: moves, Open: open})).Value(t)
	return outcomes[0]
}

// A guard holds for a task in any state, and writes nothing.
func TestGuardsHold(t *testing.T) {
	s := newStore(t)
	var guards []rules.Move
	for _, state := range slices.Backward(task.States) { // an open task would be claimed for the next state
		guards = append(guards, rules.Require(read(t, s, put(t, s, state))))
	}
	before := dump(t, s)
	expect.NoError(t, transaction(t, s, nil, guards...).Err)
	expect.Equal(t, changed(t, before, dump(t, s)), "")
	o := transaction(t, s, []task.Properties{define("next")}, guards...)
	expect.NoError(t, o.Err)
	expect.Len(t, o.IDs, 1)
	mustBeSound(t, s)
}

// If guards fail, the unit changes nothing, and its outcome names each of them.
func TestAllFailedGuardsAreNamed(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ids := mustOpen(t, s, define("stays"), define("changed"), define("cancelled"), define("removed"), define("moved by hand"))
		var guards []rules.Move
		for _, id := range ids {
			guards = append(guards, rules.Require(read(t, s, id)))
		}
		mustChange(t, s, ids[1], task.Changes{Input: new("other")})
		mustMove(t, s, ids[2], rules.Cancel)
		must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Task(ids[3])).Err())
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(ids[4]), "round", "7", "state", "a\tb\nc").Err())
		before := dump(t, s)
		o := transaction(t, s, []task.Properties{define("next")}, guards...)
		want := "[require task 2: it is open in round 0, revision 1 require task 3: it is expired in round 0 " +
			"require task 4: there is no such task require task 5: it is a?b?c in round 7]"
		expect.Equal(t, fmt.Sprint(o.Refused), want)
		e := new(rules.StateError)
		expect.MustTrue(t, errors.As(o.Err, &e), o)
		expect.Equal(t, e.ID, ids[1])
		expect.Equal(t, e.Revision, 1)
		expect.Equal(t, o.IDs, nil)
		expect.Equal(t, changed(t, before, dump(t, s)), "")
	})
}

// A move with the fence of a revision is refused after a change of the task, although the state and the round are the same.
func TestRevisionFence(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, define("a"), define("b"))
	a, b := read(t, s, ids[0]), read(t, s, ids[1])
	m, err := rules.Change(a, task.Changes{Input: new("other")})
	mustApply(t, s, m, err)
	cancelA, _ := rules.Cancel(a)
	cancelB, _ := rules.Cancel(b)
	for _, moves := range [][]rules.Move{{cancelA.IfUnchanged(a)}, {cancelB.IfUnchanged(b), cancelA.IfUnchanged(a)}} {
		expect.Equal(t, fmt.Sprint(transaction(t, s, nil, moves...).Refused), "[cancel task 1: it is open in round 0, revision 1]")
	}
	o := transaction(t, s, nil, cancelB.IfUnchanged(b), cancelA.IfUnchanged(read(t, s, a.ID)))
	expect.True(t, o.Err == nil, o.Err)
	mustBeSound(t, s)
}

// In one unit, a task can give its key to another task. Two tasks cannot take the same key.
func TestKeysInOneUnit(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		d := keyed("k", task.UntilArchived)
		var ids [3]int64
		for i := range ids { // three archived tasks with the same key
			ids[i] = mustOpenUnique(t, s, d).ID
			mustMove(t, s, ids[i], rules.Cancel)
			mustMove(t, s, ids[i], rules.Archive)
		}
		reopen := func(id int64) rules.Move {
			m := expect.Result(rules.Reopen(read(t, s, id))).Value(t)
			return m
		}
		before := dump(t, s)
		o := transaction(t, s, nil, reopen(ids[0]), reopen(ids[1]), reopen(ids[2]))
		expect.Equal(t, fmt.Sprint(o.Refused), "[task 1: task 3 holds its unique key task 2: task 3 holds its unique key]")
		expect.Equal(t, changed(t, before, dump(t, s)), "")
		// A refused unit leaves the key to the next unit of the call.
		outcomes := expect.Result(s.Apply(t.Context(), "test", redisstate.Unit{Moves: []rules.Move{reopen(ids[0]), reopen(ids[1])}}, redisstate.Unit{Moves: []rules.Move{reopen(ids[2])}})).Value(t)
		expect.MustTrue(t, outcomes[0].Err != nil, outcomes)
		expect.NoError(t, outcomes[1].Err)
		mustMove(t, s, ids[2], rules.Cancel)
		m := expect.Result(rules.Archive(read(t, s, ids[2]))).Value(t)
		expect.NoError(t, transaction(t, s, nil, reopen(ids[0]), m).Err)
		if o := mustOpenUnique(t, s, d); o.ID != ids[0] || !o.Existing {
			t.Errorf("%+v", o)
		}
		mustBeSound(t, s)
	})
}

// After a failover, another claim may have run the same round. Then a guard of the first claim fails.
func TestGuardsNameTheClaim(t *testing.T) {
	s := newStore(t)
	id := put(t, s, task.Succeeded)
	guard := rules.Require(read(t, s, id))
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "0:claim", "another").Err())
	expect.True(t, transaction(t, s, nil, guard).Err != nil, "the guard holds")
}

// A round knows the tasks that its result and its callback have opened, and only these.
func TestFollowUpsOfARound(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("first"), define("other"))
	claims := mustClaim(t, s, 2)
	result := expect.Result(rules.Execute(claims[0].Task, claims[0].ID, rules.Result{Exit: "0"})).Value(t)
	three := redisstate.Unit{Moves: []rules.Move{result}, Open: []task.Properties{define("a"), define("b"), define("c")}, ByRound: true}
	for i := range 2 { // the second report comes too late, and opens nothing
		err := expect.Result(s.Apply(t.Context(), "w", three)).Value(t)[0].Err
		expect.True(t, (err == nil) == (i == 0), "report", i, err)
	}
	expect.Equal(t, read(t, s, 1).Current().FollowUps, task.IDRange{First: 3, Last: 5})
	settleMany(t, s)
	archive := expect.Result(rules.Archive(read(t, s, 1))).Value(t)
	stale := archive
	stale.Round++
	expect.True(t, expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Moves: []rules.Move{stale}, Open: []task.Properties{define("no")}})).Value(t)[0].Err != nil)
	expect.Equal(t, read(t, s, 1).Current().FollowUps, task.IDRange{First: 3, Last: 5})
	expect.NoError(t, expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Moves: []rules.Move{archive}, Open: []task.Properties{define("next")}})).Value(t)[0].Err)
	expect.Equal(t, read(t, s, 1).Current().FollowUps, task.IDRange{First: 6, Last: 6})
	transaction(t, s, []task.Properties{define("x")}, expect.Result(rules.Cancel(read(t, s, 3))).Value(t))
	expect.Equal(t, read(t, s, 3).Current().FollowUps, task.IDRange{}, "a transaction opens no follow-ups")
	for _, text := range []string{"", "7", "7-", "-7", "x-y", "9-3", "0-4", "1-99999999999999", "1-9999999999999999999999", "1-2-3"} {
		s.Conn.Redis.HSet(t.Context(), s.Keys.Task(2), "0:follow_ups", text)
		expect.Equal(t, read(t, s, 2).Current().FollowUps, task.IDRange{}, text)
	}
}
