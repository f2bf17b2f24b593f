package redisstate_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

func afterTasks(ids ...int64) task.Properties {
	d := define("x")
	d.After = &task.Dependencies{Tasks: ids}
	return d
}

// Redis removes no task that a waiting task may need, from the call that opens the waiting task on.
func TestRemovalBeforeLinks(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ids := mustOpen(t, s, define("named"), inGroup("g"), define("free"))
		for _, c := range mustClaim(t, s, 3) {
			mustExecute(t, s, c, rules.Result{Exit: "0"})
		}
		for _, id := range ids {
			mustSettle(t, s, id)
		}
		refused := func(when string, id int64, want string, unknown bool) {
			t.Helper()
			before := dump(t, s)
			unaware := *read(t, s, id)
			unaware.Dependents = 0
			m := expect.Result(rules.Remove(&unaware)).Value(t)
			outcomes := expect.Result(s.Apply(t.Context(), "user", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)
			got := outcomes[0].Err
			expect.Fails(t, got, want, when, "task", id)
			expect.Equal(t, errors.Is(got, redisstate.ErrUnlinked), unknown, when, "task", id)
			expect.Equal(t, changed(t, before, dump(t, s)), "", when)
		}
		mustOpen(t, s, afterTasks(ids[0]), afterGroup("g"))
		refused("one waits", ids[0], "unfinished tasks need it (after)", false)
		refused("one waits for its group", ids[1], "unfinished tasks need its group", false)
		mustOpen(t, s, slices.Repeat([]task.Properties{afterTasks(ids[0])}, 40)...)
		refused("many wait", ids[2], "the server has not looked up", true)
		kept := s.Conn.Redis.ZRangeWithScores(t.Context(), s.Keys.Unlinked(), 0, -1).Val()
		s.Conn.Redis.Del(t.Context(), s.Keys.Unlinked())
		s.Conn.Redis.Set(t.Context(), s.Keys.Unlinked(), "x", 0)
		refused("a wrong type", ids[2], "unlinked is not a sorted set", true)
		expect.Result(s.Open(t.Context(), "manager", afterTasks(ids[0]))).Fails(t, "unlinked is not a sorted set")
		s.Conn.Redis.Del(t.Context(), s.Keys.Unlinked())
		s.Conn.Redis.ZAdd(t.Context(), s.Keys.Unlinked(), kept...)
		for left := int64(42); left > 0; { // on a slow machine, a turn ends before all are linked
			expect.Result(dependencies.Of(s).LinkWaiting(t.Context())).OK(t)
			now := s.Conn.Redis.ZCard(t.Context(), s.Keys.Unlinked()).Val()
			expect.MustTrue(t, now < left, "after a turn", now, "tasks are not linked; before it", left)
			left = now
		}
		refused("all are linked", ids[0], ": unfinished tasks need it", false)
		m, _ := rules.Remove(read(t, s, ids[2]))
		expect.NoError(t, expect.Result(s.Apply(t.Context(), "user", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)[0].Err)
	})
}

func inGroup(group string) task.Properties {
	d := define("x")
	d.Group = group
	return d
}

func afterGroup(group string) task.Properties {
	d := define("x")
	d.AfterAny = &task.Dependencies{Group: group}
	return d
}
