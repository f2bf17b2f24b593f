package redisstate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

func afterTasks(ids ...int64) task.Properties {
	d := define("x")
	d.After = &task.Dependencies{Tasks: ids}
	return d
}

// Redis removes no task that a waiting task may need, from the call that opens the waiting task on.
func TestRemovalBeforeLinks(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
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
			outcomes := expect.Result(s.Apply(t.Context(), "user", Unit{Moves: []rules.Move{m}})).Value(t)
			got := outcomes[0].Err
			expect.Fails(t, got, want, when, "task", id)
			expect.Equal(t, errors.Is(got, ErrUnlinked), unknown, when, "task", id)
			expect.Equal(t, changed(t, before, dump(t, s)), "", when)
		}
		mustOpen(t, s, afterTasks(ids[0]), afterGroup("g"))
		refused("one waits", ids[0], "unfinished tasks need it (after)", false)
		refused("one waits for its group", ids[1], "unfinished tasks need its group", false)
		mustOpen(t, s, slices.Repeat([]task.Properties{afterTasks(ids[0])}, 40)...)
		refused("many wait", ids[2], "the server has not looked up", true)
		kept := s.Redis.ZRangeWithScores(t.Context(), s.Keys.Unlinked(), 0, -1).Val()
		s.Redis.Del(t.Context(), s.Keys.Unlinked())
		s.Redis.Set(t.Context(), s.Keys.Unlinked(), "x", 0)
		refused("a wrong type", ids[2], "unlinked is not a sorted set", true)
		expect.Result(s.Open(t.Context(), "manager", afterTasks(ids[0]))).Fails(t, "unlinked is not a sorted set")
		s.Redis.Del(t.Context(), s.Keys.Unlinked())
		s.Redis.ZAdd(t.Context(), s.Keys.Unlinked(), kept...)
		for left := int64(42); left > 0; { // on a slow machine, a turn ends before all are linked
			expect.Result(s.LinkWaiting(t.Context())).OK(t)
			now := s.Redis.ZCard(t.Context(), s.Keys.Unlinked()).Val()
			expect.MustTrue(t, now < left, "after a turn", now, "tasks are not linked; before it", left)
			left = now
		}
		refused("all are linked", ids[0], ": unfinished tasks need it", false)
		m, _ := rules.Remove(read(t, s, ids[2]))
		expect.NoError(t, expect.Result(s.Apply(t.Context(), "user", Unit{Moves: []rules.Move{m}})).Value(t)[0].Err)
	})
}

// A turn links a limited number of dependencies. Later turns continue, also in the middle of a task.
func TestATurnOfLinksIsShort(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := connect(t, redistest.Shared(t), redistest.Namespace(t))
		most := callsPerTurn * linksPerCall
		if late {
			withoutTime(t)
			most = callsPerTurn * 32
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
			n, _ := s.Redis.HGet(t.Context(), s.Keys.Task(4001), "0:released").Int()
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

// The tasks that wait for a task, or for its group, are in its lists until they know its end. Reading them is bounded.
func TestAwaiting(t *testing.T) {
	s := newStore(t)
	first := mustOpen(t, s, inGroup("g"))[0]
	after := define("after")
	after.After = &task.Dependencies{Tasks: []int64{first}}
	whatever := define("any")
	whatever.AfterAny = &task.Dependencies{Tasks: []int64{first}}
	ids := mustOpen(t, s, after, whatever, afterGroup("g"))
	expect.Result(s.LinkWaiting(t.Context())).OK(t)
	mustBe := func(when, group string, most int64, want string) {
		t.Helper()
		all, total, err := s.Awaiting(t.Context(), first, group, most)
		expect.Equal(t, fmt.Sprint(all, total, err), want, when)
	}
	mustBe("all", "g", 10, fmt.Sprintf("[{%d 0 false false} {%d 0 true false} {%d 0 true true}] 3 <nil>", ids[0], ids[1], ids[2]))
	mustBe("without the group", "", 10, fmt.Sprintf("[{%d 0 false false} {%d 0 true false}] 2 <nil>", ids[0], ids[1]))
	mustBe("one of each", "g", 1, fmt.Sprintf("[{%d 0 false false} {%d 0 true true}] 3 <nil>", ids[0], ids[2]))
	key := s.Keys.DependentsPrefix() + strconv.FormatInt(first, 10)
	s.Redis.RPush(t.Context(), key, "x:y", "7", "", "99999999999999999999:1", "7:1??")
	s.Redis.Del(t.Context(), s.Keys.GroupDependents("g"))
	s.Redis.Set(t.Context(), s.Keys.GroupDependents("g"), "text", 0)
	mustBe("odd entries", "g", 10, fmt.Sprintf("[{%d 0 false false} {%d 0 true false}] 7 <nil>", ids[0], ids[1]))
	mustBe("another group", "none", 10, fmt.Sprintf("[{%d 0 false false} {%d 0 true false}] 7 <nil>", ids[0], ids[1]))
	s.Close()
	_, _, err := s.Awaiting(t.Context(), first, "g", 1)
	expect.True(t, err != nil, "closed")
}

func afterGroup(group string) task.Properties {
	d := define("x")
	d.AfterAny = &task.Dependencies{Group: group}
	return d
}

// The groups that tasks wait for have their marks and some of their dependents.
func TestAwaitedGroups(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, inGroup("a"), inGroup("b"), inGroup("c"))
	ids := mustOpen(t, s, afterGroup("a"), afterGroup("b"), afterGroup("b"), afterGroup("b"), define("plain"))
	must(t, s.CloseGroup(t.Context(), "b"))
	open := expect.Result(s.OpenGroupsOf(t.Context(), append(slices.Clone(ids), 999))).Value(t)
	expect.Equal(t, open, []string{"a"})
	expect.Result(s.LinkWaiting(t.Context())).OK(t)
	mustBe := func(when, want string) {
		t.Helper()
		awaited, err := s.MostAwaited(t.Context(), 10, 2)
		got := fmt.Sprint(awaited)
		expect.NoError(t, err, when)
		expect.Equal(t, got, want, when)
	}
	mustBe("linked", fmt.Sprintf("[{b closed [%d %d]} {a  [%d]}]", ids[1], ids[2], ids[0]))
	one := expect.Result(s.MostAwaited(t.Context(), 1, 1)).Value(t)
	expect.MustLen(t, one, 1)
	expect.MustEqual(t, one[0].Group, "b")
	expect.Len(t, one[0].Dependents, 1)
	s.Redis.Del(t.Context(), s.Keys.GroupDependents("b"))
	s.Redis.Set(t.Context(), s.Keys.GroupDependents("b"), "text", 0)
	s.Redis.ZAdd(t.Context(), s.Keys.AwaitedGroups(), redis.Z{Score: 9, Member: "unknown"})
	s.Redis.RPush(t.Context(), s.Keys.GroupDependents("unknown"), "x:y")
	mustBe("odd lists", fmt.Sprintf("[{a  [%d]}]", ids[0]))
	s.Redis.Del(t.Context(), s.Keys.AwaitedGroups(), s.Keys.Groups())
	s.Redis.Set(t.Context(), s.Keys.AwaitedGroups(), "text", 0)
	s.Redis.Set(t.Context(), s.Keys.Groups(), "text", 0)
	mustBe("wrong types", "[]")
	open, err := s.OpenGroupsOf(t.Context(), ids)
	expect.NoError(t, err)
	expect.Equal(t, open, []string{"a", "b"})
	s.Close()
	_, err = s.MostAwaited(t.Context(), 1, 1)
	_, err2 := s.OpenGroupsOf(t.Context(), ids)
	expect.Fails(t, err, "")
	expect.Fails(t, err2, "")
}
