package redisstate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// groupNames returns the names and the counts of all groups, read in pages of one.
func groupNames(t *testing.T, s *redisstate.Store, prefix string) string {
	return fmt.Sprint(groupList(t, s, prefix))
}

func groupList(t *testing.T, s *redisstate.Store, prefix string) (all []string) {
	t.Helper()
	for after, more := "", true; more; more = after != "" {
		groups, next, err := s.Groups.ListGroups(t.Context(), prefix, after, 1)
		expect.NoError(t, err)
		for _, g := range groups {
			all = append(all, fmt.Sprintf("%s %v%v", g.Name, g.Counts, g.Mark.Mark))
		}
		after = next
	}
	return all
}

// A group is in the list from its first task to its last one, whatever opens or removes them.
func TestGroups(t *testing.T) {
	s := newStore(t)
	expect.Equal(t, groupNames(t, s, ""), "[]")
	ids := mustOpen(t, s, grouped("b"), define("x"), grouped("a"), grouped("b"))
	transaction(t, s, []task.Properties{grouped("t"), define("x"), grouped("t/1")})
	d := grouped("u")
	d.Unique = "k"
	mustOpen(t, s, d)
	must(t, s.Groups.CloseGroup(t.Context(), "a"))
	expect.Equal(t, groupNames(t, s, ""), "[a open 1closed b open 2 t open 1 t/1 open 1 u open 1]")
	expect.Equal(t, groupNames(t, s, "t"), "[t open 1 t/1 open 1]")
	expect.Equal(t, groupNames(t, s, "t/2"), "[]")
	for i, want := range []string{"[a open 1closed b open 1]", "[a open 1closed b open 1]", "[b open 1]", "[]"} {
		mustMove(t, s, ids[i], rules.Cancel)
		mustMove(t, s, ids[i], rules.Remove)
		both := slices.Concat(groupList(t, s, "a"), groupList(t, s, "b"))
		expect.Equal(t, fmt.Sprint(both), want, "after the removal of task", i)
	}
	expect.Equal(t, fmt.Sprint(s.Conn.Redis.ZRange(t.Context(), s.Keys.GroupNames(), 0, -1).Val()), "[t t/1 u]", "names")
	mustOpen(t, s, grouped("b"))
	expect.Equal(t, groupNames(t, s, "b"), "[b open 1]")
}

// Groups are ordered by the bytes of their names, and any text is a prefix or a name to begin after.
func TestGroupsWithHostileNames(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"a", "a\xff", "a\xffb", "b", "[x", "(", "+", "-", "ä b\n\x00", "\xff\xff"} {
		s.Conn.Redis.ZAdd(t.Context(), s.Keys.GroupNames(), redis.Z{Member: name})
		s.Conn.Redis.ZAdd(t.Context(), s.Keys.Group(name), redis.Z{Score: index.GroupScore(task.Failed, 7), Member: 7})
	}
	for prefix, want := range map[string]string{
		"a\xff": "[a\xff failed 1 a\xffb failed 1]", "\xff": "[\xff\xff failed 1]", "(": "[( failed 1]", "[": "[[x failed 1]", "+": "[+ failed 1]",
		"-": "[- failed 1]", "a": "[a failed 1 a\xff failed 1 a\xffb failed 1]", "ä b\n\x00": "[ä b\n\x00 failed 1]", "\xff\xff\xff": "[]",
	} {
		expect.Equal(t, groupNames(t, s, prefix), want, "the prefix", prefix)
	}
	groups, next, err := s.Groups.ListGroups(t.Context(), "b", "\xff", 9)
	expect.Len(t, groups, 0, next)
	expect.Equal(t, next, "")
	expect.NoError(t, err, next)
	groups, _, err = s.Groups.ListGroups(t.Context(), "b", "a", 9)
	expect.Len(t, groups, 1)
	expect.NoError(t, err)
}

// The audit adds the names that data of earlier releases lacks, and removes the names of groups without tasks.
func TestAuditKeepsNamesOfGroups(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, grouped("old"), grouped("kept"))
		s.Conn.Redis.ZRem(t.Context(), s.Keys.GroupNames(), "old")
		for i := range 1000 { // the audit checks 500 in each call
			s.Conn.Redis.ZAdd(t.Context(), s.Keys.GroupNames(), redis.Z{Member: fmt.Sprintf("gone%d", i)})
		}
		expect.Equal(t, groupNames(t, s, ""), "[kept open 1]")
		keepIndexNames(t, s)
		expect.Equal(t, fmt.Sprint(s.Conn.Redis.ZRange(t.Context(), s.Keys.GroupNames(), 0, -1).Val()), "[kept old]", "names")
	})
}

// If another program has written the key of the names, no script refuses its tasks.
func TestForeignNamesOfGroups(t *testing.T) {
	s := newStore(t)
	s.Conn.Redis.Set(t.Context(), s.Keys.GroupNames(), "x", 0)
	ids := mustOpen(t, s, grouped("g"))
	transaction(t, s, []task.Properties{grouped("g")})
	mustMove(t, s, ids[0], rules.Cancel)
	mustMove(t, s, ids[0], rules.Remove)
	_, _, err := s.Groups.ListGroups(t.Context(), "", "", 1)
	expect.True(t, err != nil, "groups of a string")
}
