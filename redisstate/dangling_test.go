package redisstate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// If the hash of a task was deleted by hand, a repair removes the task's id from the index of its group. The repair
// removes no other id.
func TestDanglingIDsAreRemovedFromGroups(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		grouped := define("x")
		grouped.Group = "a:b"
		mustOpen(t, s, slices.Repeat([]tdf.Properties{grouped}, 300)...)
		for id := int64(1); id <= 300; id += 2 {
			s.Redis.Del(ctx, s.Keys.Task(id))
			s.Redis.ZRem(ctx, s.Keys.List(tdf.Open), id)
		}
		s.Redis.Set(ctx, s.Keys.Group("wrong"), "a string", 0)
		s.Redis.ZAdd(ctx, s.Keys.Group("open"), redis.Z{Score: 1.7e9, Member: 1}) // this key may be the open list of a namespace whose name ends in :group
		findings, err := s.Check(ctx)
		if err != nil || len(findings) != 150 || findings[0].Problem != `an id without a task, in the index of group "a:b"` {
			t.Fatal(len(findings), findings[:min(3, len(findings))], err)
		}
		id := mustOpen(t, s, grouped)[0]
		alive := Finding{Repair: findings[0].Repair}
		alive.Repair.ID = id // the finding is about an id whose task now exists
		expect.Result(s.Repair(ctx, "repair", append(findings, alive))).Is(t, 150, "repaired")
		expect.Equal(t, s.Redis.ZCard(ctx, s.Keys.Group("a:b")).Val(), 151, "ids are left in the group")
		expect.Equal(t, s.Redis.ZCard(ctx, s.Keys.Group("open")).Val(), 1, "another namespace's list was changed")
		mustBeSound(t, s)
	})
}

// The check walks through the indexes of all groups, in pages of limited size.
func TestDanglingIDsOfManyGroups(t *testing.T) {
	s := newStore(t)
	var opened []tdf.Properties
	for i := range 100 {
		d := define("x")
		d.Group = fmt.Sprint("g", i)
		opened = append(opened, d)
	}
	big := define("x")
	big.Group = "big"
	opened = append(opened, slices.Repeat([]tdf.Properties{big}, 500)...)
	ids := mustOpen(t, s, opened...)
	for _, id := range ids {
		s.Redis.Del(t.Context(), s.Keys.Task(id))
	}
	found := map[int64]bool{}
	var page GroupPage
	pages := 0
	for done := false; !done; pages++ {
		var dangling []Finding
		var err error
		if dangling, page, done, err = s.DanglingIDs(t.Context(), page, 20); err != nil {
			t.Fatal(err)
		}
		for _, f := range dangling {
			found[f.ID] = true
		}
	}
	expect.True(t, len(found) == len(ids) && pages >= 6, "found", len(found), "of", len(ids), "in", pages, "pages")
}
