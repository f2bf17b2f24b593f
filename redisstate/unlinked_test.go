package redisstate_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
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
			expect.Result(s.LinkWaiting(t.Context())).OK(t)
			now := s.Conn.Redis.ZCard(t.Context(), s.Keys.Unlinked()).Val()
			expect.MustTrue(t, now < left, "after a turn", now, "tasks are not linked; before it", left)
			left = now
		}
		refused("all are linked", ids[0], ": unfinished tasks need it", false)
		m, _ := rules.Remove(read(t, s, ids[2]))
		expect.NoError(t, expect.Result(s.Apply(t.Context(), "user", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)[0].Err)
	})
}

// A turn links a limited number of dependencies. Later turns continue, also in the middle of a task.
func TestATurnOfLinksIsShort(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := connect(t, redistest.Shared(t), redistest.Namespace(t))
		most := redisstate.CallsPerTurn * redisstate.LinksPerCall
		if late {
			withoutTime(t)
			most = redisstate.CallsPerTurn * 32
		}
		var ids []int64
		for range 4 {
			ids = append(ids, mustOpen(t, s, slices.Repeat([]task.Properties{define("d")}, 1000)...)...)
		}
		mustOpen(t, s, afterTasks(ids...), afterTasks(ids...), afterTasks(ids...))
		linked := func() (n int) {
			for id := int64(4001); id <= 4003; id++ {
				n += read(t, s, id).Current().Linked
			}
			return n
		}
		for before := 0; before < 3*len(ids); {
			if n, err := s.LinkWaiting(t.Context()); n == 0 || err != nil {
				t.Fatal(n, err)
			}
			now := linked()
			expect.MustTrue(t, now != before, "a turn links", now-before, "dependencies")
			expect.MustTrue(t, now <= before+most, "a turn links", now-before, "dependencies")
			before = now
		}
		expect.Result(s.LinkWaiting(t.Context())).Is(t, 0)
		c := mustClaim(t, s, 1)[0]
		mustExecute(t, s, c, rules.Result{Error: "no", Exit: "1"})
		mustSettle(t, s, c.Task.ID)
		for n := 1; n > 0; {
			n = expect.Result(s.HandleEndings(t.Context())).Value(t)
		}
		for id := int64(4001); id <= 4003; id++ {
			r := read(t, s, id).Current()
			expect.Equal(t, r.Waits, len(ids)-1)
			expect.NotEqual(t, r.Unmet, "")
		}
		mustMove(t, s, 4001, rules.Cancel)
		released := func() int {
			n, _ := s.Conn.Redis.HGet(t.Context(), s.Keys.Task(4001), "0:released").Int()
			return n
		}
		for before := 0; before < len(ids); {
			expect.MustEqual(t, expect.Result(s.HandleEndings(t.Context())).Value(t), 1)
			now := released()
			expect.MustTrue(t, now != before, "a turn releases", now-before, "dependencies")
			expect.MustTrue(t, now <= before+most, "a turn releases", now-before, "dependencies")
			before = now
		}
		for _, id := range ids {
			expect.MustEqual(t, read(t, s, id).Dependents, 2, "tasks need task", id)
		}
	}
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
