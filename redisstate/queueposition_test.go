package redisstate_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/opensets"
)

func TestQueuePosition(t *testing.T) {
	s := newStore(t)
	later := define("later")
	later.StartAfter = 5e9
	ids := mustOpen(t, s, later, define("first"), define("second"))
	for id, want := range map[int64]opensets.Position{
		ids[0]: {Listed: true, From: 5e9, Ahead: 2},
		ids[2]: {Listed: true, From: read(t, s, ids[1]).Rounds.At(0).Entered[task.Open] + 1e-6, Ahead: 1},
		99:     {},
	} {
		got, err := s.OpenSets.PositionOf(t.Context(), &task.Task{Properties: define("p"), ID: id, State: task.Open})
		diff := cmp.Diff(want, got, cmp.Comparer(func(a, b task.Time) bool { return a.String() == b.String() }))
		expect.NoError(t, err, "task", id, diff)
		expect.Equal(t, diff, "", "task", id)
	}
}

// The position counts the tasks with a higher priority that may be claimed now, in the same requirement.
func TestTasksWithAHigherPriority(t *testing.T) {
	s := newStore(t)
	later := placed("a", 9)
	later.StartAfter = 4e9
	ids := mustOpen(t, s, placed("a", 2), placed("a", 2), placed("a", 3), placed("a", 7), placed("a", 7), placed("a", 1), placed("b", 5), later)
	mustBe := func(id int64, ahead, higher int64) {
		t.Helper()
		q := expect.Result(s.OpenSets.PositionOf(t.Context(), read(t, s, id))).Value(t)
		expect.True(t, q.Listed, "task", id, q, "want", ahead, higher)
		expect.Equal(t, q.Ahead, ahead, "task", id, higher)
		expect.Equal(t, q.Higher, higher, "task", id, ahead)
	}
	mustBe(ids[1], 1, 3)
	mustBe(ids[5], 0, 5)
	mustBe(ids[6], 0, 0)
	plain := mustOpen(t, s, define("plain"))
	mustBe(plain[0], 0, 0)
	var many []task.Properties
	for i := range 105 {
		many = append(many, placed("", 1+i))
	}
	mustOpen(t, s, many...)
	mustBe(plain[0], 0, 105)
}

// The tasks of other requirements count if they go before: those with a higher priority, and those of the same that became due earlier.
func TestTasksOfOtherRequirementsAhead(t *testing.T) {
	s := newStore(t)
	tagged := func(priority int) task.Properties {
		d := define("tagged")
		d.Tags, d.Priority = []string{"gpu"}, priority
		return d
	}
	plain := mustOpen(t, s, define("a"), define("b"))
	ids := mustOpen(t, s, tagged(0), tagged(3))
	last := mustOpen(t, s, define("c"), tagged(-1))
	for id, want := range map[int64][2]int64{plain[0]: {0, 1}, ids[0]: {2, 1}, ids[1]: {0, 0}, last[0]: {3, 1}, last[1]: {0, 5}} {
		of := read(t, s, id)
		q := expect.Result(s.OpenSets.PositionOf(t.Context(), of)).Value(t)
		besides := []string{class.Plain, "tags=gpu"}
		besides = slices.DeleteFunc(besides, func(name string) bool { return name == of.OpenSet() })
		expect.NoError(t, s.OpenSets.AheadIn(t.Context(), &q, of, besides))
		expect.Equal(t, q.Ahead, want[0], id)
		expect.Equal(t, q.Higher, want[1], id)
	}
}

// Tasks that wait for a limit also have a position: among the tasks that wait for the same limit.
func TestPositionBehindALimit(t *testing.T) {
	s := newStore(t)
	mustLimit(t, s, "db", running(0))
	low, high, other := placed("a", 1), placed("a", 5), placed("a", 9)
	low.LimitKey, high.LimitKey, other.LimitKey = "db", "db", "free"
	ids := mustOpen(t, s, low, high, high, other)
	claimFor(t, s, 3, offerOf("a"))
	waits := read(t, s, ids[0])
	q := expect.Result(s.OpenSets.PositionOf(t.Context(), waits)).Value(t)
	expect.True(t, waits.WaitsForLimit(), "waiting", waits.WaitsForLimit(), q, "want 2 tasks with a higher priority")
	expect.True(t, q.Listed, "waiting", waits.WaitsForLimit(), q, "want 2 tasks with a higher priority")
	expect.Equal(t, q.Ahead, 0)
	expect.Equal(t, q.Higher, 2)
}

func TestFull(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, "full")
	settings, _, room, err := s.Room(t.Context())
	expect.NoError(t, err)
	expect.True(t, !settings.ClaimsWait(room), "claims wait for a Redis without a limit", room)
	must(t, s.Conn.Redis.ConfigSet(t.Context(), "maxmemory", "1").Err())
	settings, _, room, err = s.Room(t.Context())
	expect.True(t, settings.ClaimsWait(room), "claims do not wait for a Redis at its limit", room, err)
	expect.NoError(t, err)
}
