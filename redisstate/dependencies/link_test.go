package dependencies_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A turn links a limited number of dependencies. Later turns continue, also in the middle of a task.
func TestATurnOfLinksIsShort(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := connect(t)
		links := dependencies.Of(s)
		most := dependencies.CallsPerTurn * dependencies.LinksPerCall
		if late { // the script belongs to the process, so this test is not parallel
			source := lua.Link.Source()
			other := strings.Replace(source, "BUDGET = 0.003", "BUDGET = -1", 1)
			expect.MustTrue(t, other != source, "the prelude has another budget")
			lua.Link.Load(func() string { return other })
			t.Cleanup(func() { lua.Link.Load(lua.Link.Source) })
			most = dependencies.CallsPerTurn * 32
		}
		var ids []int64
		for range 4 {
			ids = append(ids, mustOpen(t, s, slices.Repeat([]task.Properties{define("d")}, 1000)...)...)
		}
		waits := define("x")
		waits.After = &task.Dependencies{Tasks: ids}
		mustOpen(t, s, waits, waits, waits)
		linked := func() (n int) {
			for id := int64(4001); id <= 4003; id++ {
				n += testspace.Read(t, s, id).Current().Linked
			}
			return n
		}
		for before := 0; before < 3*len(ids); {
			if n, err := links.LinkWaiting(t.Context()); n == 0 || err != nil {
				t.Fatal(n, err)
			}
			now := linked()
			expect.MustTrue(t, now != before, "a turn links", now-before, "dependencies")
			expect.MustTrue(t, now <= before+most, "a turn links", now-before, "dependencies")
			before = now
		}
		expect.Result(links.LinkWaiting(t.Context())).Is(t, 0)
		claimed := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 3600})).Value(t)
		testspace.End(t, s, claimed.Claims[0], rules.Result{Error: "no", Exit: "1"})
		for n := 1; n > 0; {
			n = expect.Result(links.HandleEndings(t.Context())).Value(t)
		}
		for id := int64(4001); id <= 4003; id++ {
			r := testspace.Read(t, s, id).Current()
			expect.Equal(t, r.Waits, len(ids)-1)
			expect.NotEqual(t, r.Unmet, "")
		}
		m, err := rules.Cancel(testspace.Read(t, s, 4001))
		testspace.Apply(t, s, m, err)
		released := func() int {
			n, _ := s.Conn.Redis.HGet(t.Context(), s.Keys.Task(4001), "0:released").Int()
			return n
		}
		for before := 0; before < len(ids); {
			expect.MustEqual(t, expect.Result(links.HandleEndings(t.Context())).Value(t), 1)
			now := released()
			expect.MustTrue(t, now != before, "a turn releases", now-before, "dependencies")
			expect.MustTrue(t, now <= before+most, "a turn releases", now-before, "dependencies")
			before = now
		}
		for _, id := range ids {
			expect.MustEqual(t, testspace.Read(t, s, id).Dependents, 2, "tasks need task", id)
		}
	}
}

// EachDependency gives out each task of a group once, even if a manager archives the tasks meanwhile.
func TestDependenciesArchivedMeanwhile(t *testing.T) {
	s := newStore(t)
	n := dependencies.GroupIDsPerPage + 50
	ids := mustOpen(t, s, slices.Repeat([]task.Properties{inGroup("g")}, n)...)
	last := mustOpen(t, s, afterGroup("g"))[0]
	moveAll := func(ids []int64, decide func(t *task.Task) (rules.Move, error)) {
		stored := expect.Result(s.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Whole})).Value(t)
		var units []redisstate.Unit
		for _, x := range stored {
			m := expect.Result(decide(x.Task)).Value(t)
			units = append(units, redisstate.Unit{Moves: []rules.Move{m}})
		}
		expect.Result(s.Apply(t.Context(), "m", units...)).OK(t)
	}
	moveAll(ids, rules.Cancel)
	seen := map[int64]int{}
	left, err := dependencies.Of(s).EachDependency(t.Context(), last, func(x redisstate.Stored) bool {
		if seen[x.ID]++; len(seen) == 1 {
			moveAll(ids[:500], rules.Archive)
			moveAll(ids[n-10:], rules.Archive)
		}
		return true
	})
	expect.NoError(t, err)
	expect.Equal(t, left, 0, n, "tasks")
	expect.Len(t, seen, n, left)
	for id, times := range seen {
		expect.MustTrue(t, times <= 1, "task", id, "came", times, "times")
	}
}
