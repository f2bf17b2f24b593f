package dependencies_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

func newStore(t *testing.T) *redisstate.Store {
	t.Parallel()
	return connect(t)
}

func connect(t *testing.T) *redisstate.Store {
	return testspace.Connect(t, testspace.Config(t, redistest.Shared(t)))
}

func mustOpen(t *testing.T, s *redisstate.Store, all ...task.Properties) []int64 {
	t.Helper()
	return expect.Result(s.Open(t.Context(), "manager", all...)).Value(t)
}

func define(input string) task.Properties { return task.Defaults("p", "rsync:/p/run.sh", input) }

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

// The tasks that wait for a task, or for its group, are in its lists until they know its end. Reading them is bounded.
func TestAwaiting(t *testing.T) {
	s := newStore(t)
	first := mustOpen(t, s, inGroup("g"))[0]
	after := define("after")
	after.After = &task.Dependencies{Tasks: []int64{first}}
	whatever := define("any")
	whatever.AfterAny = &task.Dependencies{Tasks: []int64{first}}
	ids := mustOpen(t, s, after, whatever, afterGroup("g"))
	expect.Result(dependencies.Of(s).LinkWaiting(t.Context())).OK(t)
	mustBe := func(when, group string, most int64, want string) {
		t.Helper()
		all, total, err := dependencies.WaitingFor(t.Context(), s, first, group, most)
		expect.Equal(t, fmt.Sprint(all, total, err), want, when)
	}
	mustBe("all", "g", 10, fmt.Sprintf("[{%d 0 false false} {%d 0 true false} {%d 0 true true}] 3 <nil>", ids[0], ids[1], ids[2]))
	mustBe("without the group", "", 10, fmt.Sprintf("[{%d 0 false false} {%d 0 true false}] 2 <nil>", ids[0], ids[1]))
	mustBe("one of each", "g", 1, fmt.Sprintf("[{%d 0 false false} {%d 0 true true}] 3 <nil>", ids[0], ids[2]))
	key := s.Keys.DependentsPrefix() + strconv.FormatInt(first, 10)
	s.Conn.Redis.RPush(t.Context(), key, "x:y", "7", "", "99999999999999999999:1", "7:1??")
	s.Conn.Redis.Del(t.Context(), s.Keys.GroupDependents("g"))
	s.Conn.Redis.Set(t.Context(), s.Keys.GroupDependents("g"), "text", 0)
	mustBe("odd entries", "g", 10, fmt.Sprintf("[{%d 0 false false} {%d 0 true false}] 7 <nil>", ids[0], ids[1]))
	mustBe("another group", "none", 10, fmt.Sprintf("[{%d 0 false false} {%d 0 true false}] 7 <nil>", ids[0], ids[1]))
	s.Close()
	_, _, err := dependencies.WaitingFor(t.Context(), s, first, "g", 1)
	expect.True(t, err != nil, "closed")
}

// The groups that tasks wait for have their marks and some of their dependents.
func TestAwaitedGroups(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, inGroup("a"), inGroup("b"), inGroup("c"))
	ids := mustOpen(t, s, afterGroup("a"), afterGroup("b"), afterGroup("b"), afterGroup("b"), define("plain"))
	expect.NoError(t, s.Groups.CloseGroup(t.Context(), "b"))
	open := expect.Result(s.Groups.OpenGroupsOf(t.Context(), append(slices.Clone(ids), 999))).Value(t)
	expect.Equal(t, open, []string{"a"})
	expect.Result(dependencies.Of(s).LinkWaiting(t.Context())).OK(t)
	mustBe := func(when, want string) {
		t.Helper()
		awaited, err := dependencies.MostAwaited(t.Context(), s, 10, 2)
		got := fmt.Sprint(awaited)
		expect.NoError(t, err, when)
		expect.Equal(t, got, want, when)
	}
	mustBe("linked", fmt.Sprintf("[{b closed [%d %d]} {a  [%d]}]", ids[1], ids[2], ids[0]))
	one := expect.Result(dependencies.MostAwaited(t.Context(), s, 1, 1)).Value(t)
	expect.MustLen(t, one, 1)
	expect.MustEqual(t, one[0].Group, "b")
	expect.Len(t, one[0].Dependents, 1)
	s.Conn.Redis.Del(t.Context(), s.Keys.GroupDependents("b"))
	s.Conn.Redis.Set(t.Context(), s.Keys.GroupDependents("b"), "text", 0)
	s.Conn.Redis.ZAdd(t.Context(), s.Keys.AwaitedGroups(), redis.Z{Score: 9, Member: "unknown"})
	s.Conn.Redis.RPush(t.Context(), s.Keys.GroupDependents("unknown"), "x:y")
	mustBe("odd lists", fmt.Sprintf("[{a  [%d]}]", ids[0]))
	s.Conn.Redis.Del(t.Context(), s.Keys.AwaitedGroups(), s.Keys.Groups())
	s.Conn.Redis.Set(t.Context(), s.Keys.AwaitedGroups(), "text", 0)
	s.Conn.Redis.Set(t.Context(), s.Keys.Groups(), "text", 0)
	mustBe("wrong types", "[]")
	open, err := s.Groups.OpenGroupsOf(t.Context(), ids)
	expect.NoError(t, err)
	expect.Equal(t, open, []string{"a", "b"})
	s.Close()
	_, err = dependencies.MostAwaited(t.Context(), s, 1, 1)
	_, err2 := s.Groups.OpenGroupsOf(t.Context(), ids)
	expect.Fails(t, err, "")
	expect.Fails(t, err2, "")
}
