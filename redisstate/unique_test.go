package redisstate_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

func keyed(key string, until task.UniqueUntil) task.Properties {
	d := define("x")
	d.Unique, d.UniqueUntil = key, until
	return d
}

// mustOpenUnique opens a task with a key, and returns its id and whether the task already existed.
func mustOpenUnique(t *testing.T, s *redisstate.Store, d task.Properties) redisstate.Opened {
	t.Helper()
	opened := expect.Result(s.OpenAll(t.Context(), "manager", "", d)).Value(t)
	expect.MustLen(t, opened, 1)
	return opened[0]
}

// While a task holds a key, opening another task with this key returns the first one. Then the key is free.
func TestUnique(t *testing.T) {
	t.Parallel()
	for until, freeIn := range map[task.UniqueUntil][]task.State{
		task.UntilFinished: {task.Succeeded, task.Failed, task.TimedOut, task.Expired, task.Archived},
		task.UntilArchived: {task.Archived},
	} {
		t.Run(string(until), func(t *testing.T) {
			s := newStore(t)
			for _, state := range task.States {
				id := put(t, s, state)
				key := string(state)
				must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "unique", key, "unique_until", string(until)).Err())
				must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Unique(), key, id).Err())
				got := mustOpenUnique(t, s, keyed(key, until))
				free := false
				for _, f := range freeIn {
					free = free || f == state
				}
				expect.NotEqual(t, got.Existing, free, "until", until, "and the holder is", state)
				if !free {
					expect.Equal(t, got.ID, id, "until", until, "and the holder is", state)
				}
				if free {
					expect.NotEqual(t, got.ID, id, "until", until, "and the holder is", state)
				}
				if free { // so that no other state of this test claims the new task
					mustMove(t, s, got.ID, rules.Cancel)
				}
				if state == task.Open {
					mustMove(t, s, id, rules.Cancel)
				}
			}
			mustBeSound(t, s)
		})
	}
}

// Of equal keys in one call, only the first gets a task. Ids stay in the order of the definitions.
func TestUniqueWithinACall(t *testing.T) {
	s := newStore(t)
	a, b := keyed("a", task.UntilFinished), keyed("b", task.UntilFinished)
	opened, err := s.OpenAll(t.Context(), "manager", "", a, b, a, define("plain"), b)
	want := "[{1 false} {2 false} {1 true} {3 false} {2 true}]"
	expect.NoError(t, err)
	expect.Equal(t, fmt.Sprint(opened), want)
	outcomes := expect.Result(s.Apply(t.Context(), "manager", redisstate.Unit{Open: []task.Properties{define("p"), a, keyed("c", task.UntilFinished), keyed("c", task.UntilFinished), define("q")}})).Value(t)
	expect.Equal(t, fmt.Sprint(outcomes[0].IDs, outcomes[0].Existing), "[4 1 5 5 6] [false true false true false]")
	mustBeSound(t, s)
}

// Of many clients that open a task with the same key at once, one opens it, and the others get the same id.
func TestUniqueAtOnce(t *testing.T) {
	s := newStore(t)
	var all [8]redisstate.Opened
	var clients sync.WaitGroup
	for i := range all {
		clients.Go(func() { all[i] = mustOpenUnique(t, s, keyed("k", task.UntilFinished)) })
	}
	clients.Wait()
	opened := 0
	for _, o := range all {
		if !o.Existing {
			opened++
		}
		expect.Equal(t, o.ID, 1, "task")
	}
	expect.Equal(t, opened, 1, "clients opened a task")
}

// A retried task takes its key again. If another task holds the key, the error names that task.
func TestReopenTakesTheKey(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		d := keyed("k", task.UntilFinished)
		first := mustOpenUnique(t, s, d).ID
		cancel := func(id int64) {
			mustMove(t, s, id, rules.Cancel)
		}
		cancel(first)
		second := mustOpenUnique(t, s, d).ID
		m := expect.Result(rules.Reopen(read(t, s, first))).Value(t)
		outcomes := expect.Result(s.Apply(t.Context(), "test", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)
		var taken *task.UniqueError
		expect.MustTrue(t, errors.As(outcomes[0].Err, &taken), outcomes[0].Err)
		expect.Equal(t, taken.ID, first)
		expect.Equal(t, taken.Holder, second)
		cancel(second)
		mustApply(t, s, m, nil)
		got := mustOpenUnique(t, s, d)
		expect.True(t, got.Existing, "after the retry", got)
		expect.Equal(t, got.ID, first)
		mustBeSound(t, s)
	})
}

// Removing the task that holds the key in Redis deletes the key. Removing an earlier holder does not.
func TestRemoveGivesTheKeyBack(t *testing.T) {
	s := newStore(t)
	d := keyed("k", task.UntilFinished)
	first := mustOpenUnique(t, s, d).ID
	mustMove(t, s, first, rules.Cancel)
	second := mustOpenUnique(t, s, d).ID
	mustMove(t, s, first, rules.Remove)
	expect.Equal(t, s.Conn.Redis.HGet(t.Context(), s.Keys.Unique(), "k").Val(), fmt.Sprint(second), "the holder")
	mustMove(t, s, second, rules.Cancel)
	mustMove(t, s, second, rules.Remove)
	expect.Equal(t, s.Conn.Redis.HLen(t.Context(), s.Keys.Unique()).Val(), 0, "keys are left")
}

// The follow-up of a task may have the key that the task gives up in the same step.
func TestFollowUpTakesTheKey(t *testing.T) {
	s := newStore(t)
	d := keyed("k", task.UntilArchived)
	mustOpenUnique(t, s, d)
	c := mustClaim(t, s, 1)[0]
	mustExecute(t, s, c, rules.Result{Exit: "0"})
	mustSettle(t, s, c.Task.ID)
	m := expect.Result(rules.Archive(read(t, s, c.Task.ID))).Value(t)
	outcomes := expect.Result(s.Apply(t.Context(), "manager", redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{d}})).Value(t)
	o := outcomes[0]
	expect.NoError(t, o.Err)
	expect.Equal(t, o.Existing, nil)
	expect.Equal(t, o.IDs[0], 2)
	mustBeSound(t, s)
}

// A key of another type, or an entry of an unknown task, stops nobody.
func TestOddUniqueKeys(t *testing.T) {
	s := newStore(t)
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Unique(), "a", "99", "b", "x", "c", "").Err())
	for i, key := range []string{"a", "b", "c"} {
		got := mustOpenUnique(t, s, keyed(key, task.UntilFinished))
		expect.True(t, !got.Existing, "key", key, got)
		expect.Equal(t, got.ID, int64(i+1), "key", key)
	}
	mustBeSound(t, s)
}

// If Redis refuses one of several tasks, the answer says which tasks were opened.
func TestOpenUniqueRefused(t *testing.T) {
	s := newStore(t)
	must(t, s.Conn.Redis.Set(t.Context(), s.Keys.Group("bad"), "x", 0).Err())
	bad := define("x")
	bad.Group = "bad"
	opened, err := s.OpenAll(t.Context(), "manager", "", keyed("a", task.UntilFinished), bad, define("y"))
	got := fmt.Sprint(opened)
	expect.Fails(t, err, "")
	expect.Equal(t, got, "[{1 false} {0 false} {2 false}]")
}

// The first task that is really opened makes the new group. So of two callers, only one opens tasks in it.
func TestOpenUniqueInANewGroup(t *testing.T) {
	s := newStore(t)
	mustOpenUnique(t, s, keyed("a", task.UntilFinished))
	a, b := keyed("a", task.UntilFinished), define("b")
	a.Group, b.Group = "g", "g"
	opened, err := s.OpenAll(t.Context(), "manager", redisstate.NewGroup("g"), a, b, b)
	got := fmt.Sprint(opened)
	expect.NoError(t, err)
	expect.Equal(t, got, "[{1 true} {2 false} {3 false}]")
	expect.Result(s.OpenAll(t.Context(), "manager", redisstate.NewGroup("g"), a, b)).FailsWith(t, redisstate.ErrGroupTaken, "the second caller")
}

// If another program uses the key `unique`, only tasks with unique keys are refused.
func TestUniqueOfAnotherType(t *testing.T) {
	s := newStore(t)
	must(t, s.Conn.Redis.Set(t.Context(), s.Keys.Unique(), "x", 0).Err())
	opened, err := s.OpenAll(t.Context(), "manager", "", define("x"), keyed("k", task.UntilFinished))
	expect.Fails(t, err, "WRONGTYPE "+s.Keys.Unique()+" is not a hash")
	expect.MustEqual(t, opened[0].ID, 1)
	expect.Equal(t, opened[1].ID, 0)
}
