package redisstate_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// byHand writes a task directly to Redis. If a list is given, it adds the task's id to the list. It does not raise the
// counter of ids.
func byHand(t testing.TB, s *redisstate.Store, id int64, list task.State) {
	t.Helper()
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "state", "open", "program", "p", "source", "rsync:/p/run.sh").Err())
	if list != "" {
		s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(list), redis.Z{Member: strconv.FormatInt(id, 10)})
	}
}

// pages returns all pages that IDs yields. If there are too many pages, it fails the test.
func pages(t testing.TB, s *redisstate.Store, most int64) [][]int64 {
	t.Helper()
	var all [][]int64
	for ids, err := range s.IDs(t.Context(), most) {
		must(t, err)
		all = append(all, ids)
		expect.MustTrue(t, len(all) <= 1000, "the walk does not end")
	}
	return all
}

func TestIDsComeInOrderAndOnce(t *testing.T) {
	s := newStore(t)
	expect.Len(t, pages(t, s, 2), 0, "without tasks")
	mustOpen(t, s, define("a"), define("b"), define("c"))
	for _, id := range []int64{9, 7, 8} {
		byHand(t, s, id, task.Open)
	}
	s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(task.Running), redis.Z{Member: "8"}, redis.Z{Member: "-1"}, redis.Z{Member: "x"})
	got, want := pages(t, s, 2), [][]int64{{1, 2}, {3}, {7, 8}, {9}}
	expect.True(t, slices.EqualFunc(got, want, slices.Equal), "got", got, "want", want)
	for ids := range s.IDs(t.Context(), 2) {
		expect.Equal(t, ids, []int64{1, 2})
		break
	}
}

// If most ids have no task, a walk scans the keys instead of trying every id. It also finds tasks that are in no list.
func TestWalkScansIfMostIDsAreGone(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		odd := connect(t, s.Conn.Addr, s.Keys.Namespace()+`[*?\]`) // without escapes, this name would be a pattern
		for _, s := range []*redisstate.Store{s, odd} {
			mustOpen(t, s, define("a"), define("b"))
			byHand(t, s, index.MaxID, task.Open)
			s.Conn.Redis.Set(t.Context(), s.Keys.TaskID(), index.MaxID, 0)
			byHand(t, s, 77, "")
			byHand(t, s, index.MaxID+1, task.Open)
			s.Conn.Redis.ZAdd(t.Context(), s.Keys.Due(), redis.Z{Member: "55"})
			s.Conn.Redis.RPush(t.Context(), s.Keys.DependentsPrefix()+"66", "77:0") // a task waits for task 66, which was deleted
			want := []int64{1, 2, 55, 66, 77, index.MaxID, index.MaxID + 1}
			expect.Equal(t, slices.Concat(pages(t, s, 4)...), want)
			findings := expect.Result(audit.Of(s).Check(t.Context())).Value(t)
			expect.True(t, slices.ContainsFunc(findings, func(f audit.Finding) bool { return f.ID == 77 }), "found", findings)
		}
	})
}

// A walk tries every id if the last id is at most 100,000 plus 10 for each task. Otherwise, it scans the keys.
func TestWalkCounts(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"))
	for last, sparse := range map[int64]bool{100_010: false, 100_011: true} {
		s.Conn.Redis.Set(t.Context(), s.Keys.TaskID(), last, 0)
		ids, page, done, err := walk.Next(t.Context(), s.Conn, walk.Page{}, 500)
		expect.NoError(t, err, "with the last id", last)
		expect.True(t, !done, "with the last id", last, len(ids), "ids, and the next page", page, err)
		expect.Equal(t, len(ids) == 500, !sparse, "with the last id", last)
	}
}

// If the hash of a task was deleted by hand, a repair removes the task's id from the index of its group. The repair
// removes no other id.
func TestDanglingIDsAreRemovedFromGroups(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	grouped := define("x")
	grouped.Group = "a:b"
	mustOpen(t, s, slices.Repeat([]task.Properties{grouped}, 300)...)
	for id := int64(1); id <= 300; id += 2 {
		s.Conn.Redis.Del(ctx, s.Keys.Task(id))
		s.Conn.Redis.ZRem(ctx, s.Keys.List(task.Open), id)
	}
	s.Conn.Redis.Set(ctx, s.Keys.Group("wrong"), "a string", 0)
	s.Conn.Redis.ZAdd(ctx, s.Keys.Group("open"), redis.Z{Score: 1.7e9, Member: 1}) // this key may be the open list of a namespace whose name ends in :group
	findings, err := audit.Of(s).Check(ctx)
	expect.NoError(t, err)
	expect.MustLen(t, findings, 150)
	expect.MustEqual(t, findings[0].Problem, `an id without a task, in the index of group "a:b"`)
	id := mustOpen(t, s, grouped)[0]
	alive := audit.Finding{Repair: findings[0].Repair}
	alive.Repair.ID = id // the finding is about an id whose task now exists
	expect.Result(audit.Of(s).Repair(ctx, "repair", append(findings, alive))).Is(t, 150, "repaired")
	expect.Equal(t, s.Conn.Redis.ZCard(ctx, s.Keys.Group("a:b")).Val(), 151, "ids are left in the group")
	expect.Equal(t, s.Conn.Redis.ZCard(ctx, s.Keys.Group("open")).Val(), 1, "another namespace's list was changed")
	mustBeSound(t, s)
}

// The check walks through the indexes of all groups, in pages of limited size.
func TestDanglingIDsOfManyGroups(t *testing.T) {
	s := newStore(t)
	var opened []task.Properties
	for i := range 100 {
		d := define("x")
		d.Group = fmt.Sprint("g", i)
		opened = append(opened, d)
	}
	big := define("x")
	big.Group = "big"
	opened = append(opened, slices.Repeat([]task.Properties{big}, 500)...)
	ids := mustOpen(t, s, opened...)
	for _, id := range ids {
		s.Conn.Redis.Del(t.Context(), s.Keys.Task(id))
	}
	found := map[int64]bool{}
	var page audit.IndexPage
	pages := 0
	for done := false; !done; pages++ {
		var dangling []audit.Finding
		var err error
		dangling, page, done, err = audit.Of(s).DanglingIDs(t.Context(), page, 20)
		expect.NoError(t, err)
		for _, f := range dangling {
			found[f.ID] = true
		}
	}
	expect.Equal(t, len(found), len(ids), pages, "pages")
	expect.Compare(t, pages, ">=", 6)
}
