package redisstate

import (
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// byHand writes a task directly to Redis. If a list is given, it adds the task's id to the list. It does not raise the
// counter of ids.
func byHand(t testing.TB, s *Store, id int64, list tdf.State) {
	t.Helper()
	must(t, s.Redis.HSet(t.Context(), s.Keys.Task(id), "state", "open", "program", "p", "source", "rsync:/p/run.sh").Err())
	if list != "" {
		s.Redis.ZAdd(t.Context(), s.Keys.List(list), redis.Z{Member: strconv.FormatInt(id, 10)})
	}
}

// pages returns all pages that IDs yields. If there are too many pages, it fails the test.
func pages(t testing.TB, s *Store, most int64) [][]int64 {
	t.Helper()
	var all [][]int64
	for ids, err := range s.IDs(t.Context(), most) {
		must(t, err)
		if all = append(all, ids); len(all) > 1000 {
			t.Fatal("the walk does not end")
		}
	}
	return all
}

func TestIDsComeInOrderAndOnce(t *testing.T) {
	s := newStore(t)
	expect.Len(t, pages(t, s, 2), 0, "without tasks")
	mustOpen(t, s, define("a"), define("b"), define("c"))
	for _, id := range []int64{9, 7, 8} {
		byHand(t, s, id, tdf.Open)
	}
	s.Redis.ZAdd(t.Context(), s.Keys.List(tdf.Running), redis.Z{Member: "8"}, redis.Z{Member: "-1"}, redis.Z{Member: "x"})
	if got, want := pages(t, s, 2), [][]int64{{1, 2}, {3}, {7, 8}, {9}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
	for ids := range s.IDs(t.Context(), 2) {
		expect.Equal(t, ids, []int64{1, 2})
		break
	}
}

// If most ids have no task, a walk scans the keys instead of trying every id. It also finds tasks that are in no list.
func TestWalkScansIfMostIDsAreGone(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		odd := connect(t, s.Addr, s.Keys.Namespace()+`[*?\]`) // without escapes, this name would be a pattern
		for _, s := range []*Store{s, odd} {
			mustOpen(t, s, define("a"), define("b"))
			mustRestore(t, s, Record{ID: MaxID, Hash: tdf.Hash{"state": "archived", "outcome": "succeeded"}})
			byHand(t, s, 77, "")
			byHand(t, s, MaxID+1, tdf.Open)
			s.Redis.ZAdd(t.Context(), s.Keys.Due(), redis.Z{Member: "55"})
			s.Redis.RPush(t.Context(), s.Keys.DependentsPrefix()+"66", "77:0") // a task waits for task 66, which was deleted
			want := []int64{1, 2, 55, 66, 77, MaxID, MaxID + 1}
			expect.Equal(t, slices.Concat(pages(t, s, 4)...), want)
			findings, err := s.Check(t.Context())
			if err != nil || !slices.ContainsFunc(findings, func(f Finding) bool { return f.ID == 77 }) {
				t.Errorf("found %v, %v", findings, err)
			}
		}
	})
}

// A walk tries every id if the last id is not too high for the number of tasks. Otherwise, it scans the keys.
func TestWalkCounts(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"))
	for last, sparse := range map[int64]bool{countedAnyway + countedForEach: false, countedAnyway + countedForEach + 1: true} {
		s.Redis.Set(t.Context(), s.Keys.TaskID(), last, 0)
		ids, page, done, err := s.Walk(t.Context(), WalkPage{}, 500)
		if err != nil || done || (page.id == 0) != sparse || !sparse && len(ids) != 500 {
			t.Errorf("with the last id %d: %d ids, and the next page %+v, %v", last, len(ids), page, err)
		}
	}
}
