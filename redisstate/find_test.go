package redisstate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// walk reads all pages of a query. Between two pages, it calls the function between.
func walkThrough(t *testing.T, s *redisstate.Store, of redisstate.ListQuery, most int, between func()) []redisstate.ListEntry {
	t.Helper()
	var all []redisstate.ListEntry
	for pages := 0; ; pages++ {
		page, last, err := s.Find(t.Context(), of, most)
		must(t, err)
		expect.MustTrue(t, len(page) <= most, "page", pages, "has", len(page), "entries, most", most, "last", last)
		if len(page) == 0 {
			expect.MustTrue(t, last, "page", pages, "has", len(page), "entries, most", most, "last", last)
		}
		expect.MustTrue(t, pages <= 10_000, "page", pages, "has", len(page), "entries, most", most, "last", last)
		all = append(all, page...)
		if last {
			return all
		}
		of.Behind = &page[len(page)-1]
		between()
	}
}

func ids(t *testing.T, places []redisstate.ListEntry) []int64 {
	t.Helper()
	var all []int64
	for _, p := range places {
		id, ok := p.ID()
		expect.True(t, ok, "an entry has the invalid member", p.Member)
		all = append(all, id)
	}
	return all
}

// Even if hundreds of entries have equal scores, a walk returns each entry once, in both directions and with any page
// size.
func TestFindPagesThroughEqualScores(t *testing.T) {
	s := newStore(t)
	var want []redisstate.ListEntry
	states := []task.State{task.Open, task.Failed, task.Archived}
	lists := map[task.State][]redis.Z{}
	for id := range 400 {
		score := []float64{0, -3, 1795229855.374808, 1795229855.374809, 1795229855.374808 + 60}[rand.IntN(5)]
		member := strconv.Itoa(id + 1)
		state := states[rand.IntN(len(states))]
		lists[state] = append(lists[state], redis.Z{Score: score, Member: member})
		want = append(want, redisstate.ListEntry{score, member})
	}
	for state, members := range lists {
		must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(state), members...).Err())
	}
	slices.SortFunc(want, redisstate.ListEntry.Compare)
	for _, most := range []int{1, 7, 99, 399, 400, 5000} {
		expect.Equal(t, walkThrough(t, s, redisstate.ListQuery{States: states, OldestFirst: true}, most, func() {}), want, most)
		got := walkThrough(t, s, redisstate.ListQuery{States: states}, most, func() {})
		slices.Reverse(got)
		expect.Equal(t, got, want, "newest first, pages of", most, "entries of … or in another order")
	}
}

func TestFindBoundsByTime(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for i := range 10 {
			for _, state := range []task.State{task.Open, task.Running} {
				member := strconv.Itoa(100*len(state) + i) // ids from 400 are open, ids from 700 are running
				must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(state), redis.Z{Score: float64(1000 + i), Member: member}).Err())
			}
		}
		running := []task.State{task.Running}
		for _, c := range []struct {
			of   redisstate.ListQuery
			want string
		}{
			{redisstate.ListQuery{States: running, After: 1007}, "[709 708 707]"},
			{redisstate.ListQuery{States: running, Before: 1002}, "[701 700]"},
			{redisstate.ListQuery{States: running, After: 1003, Before: 1005, OldestFirst: true}, "[703 704]"},
			{redisstate.ListQuery{States: running, After: 1003, Before: 1005}, "[704 703]"},
			{redisstate.ListQuery{States: running, After: 1003, Before: 1003}, "[]"},
			{redisstate.ListQuery{States: running, After: 1008, Behind: &redisstate.ListEntry{1002, "702"}, OldestFirst: true}, "[708 709]"},
			{redisstate.ListQuery{States: running, Before: 1001, Behind: &redisstate.ListEntry{1002, "702"}}, "[700]"},
			{redisstate.ListQuery{States: running, Before: 1003, Behind: &redisstate.ListEntry{1002, "702"}}, "[701 700]"},
			{redisstate.ListQuery{States: []task.State{task.Open}, After: 1008}, "[409 408 407 406 405 404 403 402 401 400]"},
			{redisstate.ListQuery{}, "[]"},
		} {
			expect.Equal(t, fmt.Sprint(ids(t, walkThrough(t, s, c.of, 2, func() {}))), c.want, c.of)
		}
	})
}

// A walk through a group returns each task once, even if all tasks change their states meanwhile.
func TestFindMissesNoTaskOfAGroupThatMoves(t *testing.T) {
	s := newStore(t)
	var want []int64
	move := func(id int64, state task.State) {
		z := redis.Z{Score: float64(index.GroupCode(state))*index.GroupIDs + float64(id), Member: strconv.FormatInt(id, 10)}
		must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.Group("g"), z).Err())
	}
	for id := int64(1); id <= 120; id++ {
		want = append(want, id)
		move(id, task.States[rand.IntN(len(task.States))])
	}
	for _, oldest := range []bool{true, false} {
		found := walkThrough(t, s, redisstate.ListQuery{States: task.States, Group: "g", OldestFirst: oldest}, 7, func() {
			for range 60 {
				move(want[rand.IntN(len(want))], task.States[rand.IntN(len(task.States))])
			}
		})
		got := ids(t, found)
		if !oldest {
			slices.Reverse(got)
		}
		expect.Equal(t, got, want, "oldest first", oldest)
	}
}

func TestFindReturnsInvalidMembers(t *testing.T) {
	s := newStore(t)
	for _, member := range []string{"", " ", "x y", "007", "-5", "9", "\xff\x00", "zz"} {
		must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(task.Failed), redis.Z{Score: 5, Member: member}).Err())
	}
	for _, oldest := range []bool{true, false} {
		found := walkThrough(t, s, redisstate.ListQuery{States: []task.State{task.Failed}, OldestFirst: oldest}, 1, func() {})
		expect.Len(t, found, 8, "oldest first", oldest, "entries of 8")
	}
}

func TestReadFactsAndTexts(t *testing.T) {
	s := newStore(t)
	d := define("some input")
	d.Group, d.Meta, d.MaxFails = "g", `{"a":1}`, 5
	id := mustOpen(t, s, d)[0]
	for range 3 {
		mustExecute(t, s, mustClaim(t, s, 1)[0], rules.Result{Error: "no", Output: "out", Exit: "1", Seconds: 2})
		mustSettle(t, s, id)
	}
	want := redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(2)}
	stored := expect.Result(s.Read(t.Context(), []int64{id, 99, id}, want)).Value(t)
	expect.MustLen(t, stored, 3)
	expect.MustEqual(t, stored[1].Task, nil)
	got := stored[0].Task
	expect.Equal(t, got.Round, 3)
	expect.Equal(t, got.Fails, 3)
	expect.Equal(t, got.Group, "g")
	expect.Equal(t, got.State, task.Open)
	expect.Equal(t, got.Rounds.At(2).Exit, "1")
	expect.Equal(t, got.Rounds.At(2).Seconds, 2)
	expect.Equal(t, got.Input+got.Meta+got.Rounds.At(2).Output+got.Rounds.At(2).Error, "")
	expect.Equal(t, got.Rounds.At(1).Worker, "")
	want.Keep = func(*task.Task) bool { return false }
	expect.Equal(t, expect.Result(s.Read(t.Context(), []int64{id}, want)).Value(t)[0].Task, nil)
	ids := []int64{id, 99, id}
	texts := redisstate.SameTexts(redisstate.TextsOf{redisstate.OfTask, task.TextInput | task.TextMeta}, redisstate.TextsOf{2, task.TextOutput | task.TextError}, redisstate.TextsOf{9, task.TextError})
	for _, c := range []struct{ most, want int }{{1000, 3}, {44, 3}, {43, 2}, {22, 2}, {1, 1}} {
		stored := expect.Result(s.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Head, Texts: texts, MaxBytes: c.most})).Value(t)
		expect.MustLen(t, stored, c.want, "at most", c.most)
		x := stored[0]
		if r := x.Task.Rounds.At(2); x.Bytes != 22 || x.Task.Input != "some input" || x.Task.Meta != `{"a":1}` || r.Output != "out" || r.Error != "no" || !r.HasError {
			t.Errorf("%d bytes of %+v, %+v", x.Bytes, x.Task, r)
		}
		expect.Equal(t, x.Task.Unread, task.TextLog|task.TextCheckpoint)
		expect.Equal(t, x.Task.Rounds.At(2).Unread, task.TextResult|task.TextTail)
	}
}

func TestFitting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sizes []int
		most  int
		want  int
	}{
		{nil, 5, 0},
		{[]int{9}, 5, 1},
		{[]int{9, 0}, 5, 1},
		{[]int{2, 3, 0, 1}, 5, 3},
		{[]int{2, 3}, 5, 2},
		{[]int{0, 9}, 0, 1},
	} {
		expect.Equal(t, conn.Fitting(c.sizes, c.most), c.want, c.sizes, "within", c.most)
	}
}
