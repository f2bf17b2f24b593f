package redisstate

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

func inGroup(group string) tdf.Properties {
	d := define("x")
	d.Group = group
	return d
}

func afterGroup(group string) tdf.Properties {
	d := define("x")
	d.AfterAny = &tdf.Dependencies{Group: group}
	return d
}

// The groups that tasks wait for have their marks and some of their dependents.
func TestAwaitedGroups(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, inGroup("a"), inGroup("b"), inGroup("c"))
	ids := mustOpen(t, s, afterGroup("a"), afterGroup("b"), afterGroup("b"), afterGroup("b"), define("plain"))
	must(t, s.CloseGroup(t.Context(), "b"))
	open, err := s.OpenGroupsOf(t.Context(), append(slices.Clone(ids), 999))
	expect.True(t, err == nil && slices.Equal(open, []string{"a"}), "open groups", open, err)
	expect.Result(s.LinkWaiting(t.Context())).OK(t)
	mustBe := func(when, want string) {
		t.Helper()
		awaited, err := s.MostAwaited(t.Context(), 10, 2)
		got := fmt.Sprint(awaited)
		expect.True(t, err == nil && got == want, when, got, err, "want", want)
	}
	mustBe("linked", fmt.Sprintf("[{b closed [%d %d]} {a  [%d]}]", ids[1], ids[2], ids[0]))
	one, err := s.MostAwaited(t.Context(), 1, 1)
	expect.True(t, err == nil && len(one) == 1 && one[0].Group == "b" && len(one[0].Dependents) == 1, "the first one", one, err)
	s.Redis.Del(t.Context(), s.Keys.GroupDependents("b"))
	s.Redis.Set(t.Context(), s.Keys.GroupDependents("b"), "text", 0)
	s.Redis.ZAdd(t.Context(), s.Keys.AwaitedGroups(), redis.Z{Score: 9, Member: "unknown"})
	s.Redis.RPush(t.Context(), s.Keys.GroupDependents("unknown"), "x:y")
	mustBe("odd lists", fmt.Sprintf("[{a  [%d]}]", ids[0]))
	s.Redis.Del(t.Context(), s.Keys.AwaitedGroups(), s.Keys.Groups())
	s.Redis.Set(t.Context(), s.Keys.AwaitedGroups(), "text", 0)
	s.Redis.Set(t.Context(), s.Keys.Groups(), "text", 0)
	mustBe("wrong types", "[]")
	if open, err = s.OpenGroupsOf(t.Context(), ids); err != nil || !slices.Equal(open, []string{"a", "b"}) {
		t.Errorf("without marks: %q, %v", open, err)
	}
	s.Close()
	_, err = s.MostAwaited(t.Context(), 1, 1)
	_, err2 := s.OpenGroupsOf(t.Context(), ids)
	if err == nil || err2 == nil {
		t.Errorf("closed: %v", errors.Join(err, err2))
	}
}
