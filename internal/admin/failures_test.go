package admin

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// onEmbedded returns an Admin, and its manager, for a namespace in an embedded Redis that stops when the test ends.
func onEmbedded(t *testing.T) (*Admin, *manager.Manager) {
	t.Helper()
	m := testspace.Manager(t, testspace.Config(t, testspace.Embedded(t)), testspace.Log(testspace.Silent))
	return New(m), m
}

// archive writes archived tasks. The function change changes the fields of each task.
func archive(t *testing.T, a *Admin, many int, change func(i int, h task.Hash)) {
	t.Helper()
	s := a.redis()
	tasks := map[int64]task.Hash{}
	for i := range many {
		at := task.Time(1_800_000_000 + i)
		h := task.Hash{
			"id": fmt.Sprint(i + 1), "state": "archived", "round": "0", "program": "p", "source": "rsync:/p/run.sh", "outcome": "succeeded",
			"0:open": "1", "0:worker": "good", "0:exit": "0", "0:executed": at.String(), "0:archived": at.String(), "0:claim": "c",
		}
		change(i, h)
		tasks[int64(i+1)] = h
	}
	testspace.PutTasks(t, s, tasks)
}

// setFailed changes the fields of a task so that the task failed in its only round.
func setFailed(h task.Hash, exit, text string) {
	h["outcome"], h["0:failure"], h["0:exit"], h["0:error"] = "failed", h["0:executed"], exit, text
}

// Query.Failure also selects a task whose failure was in an earlier round.
func TestForgivenFailuresAreFound(t *testing.T) {
	a, m := onEmbedded(t)
	archive(t, a, 1, func(_ int, h task.Hash) {
		h["round"], h["0:failure"], h["0:error"], h["0:exit"] = "5", h["0:executed"], "bad", "1"
		for round := 1; round <= 5; round++ { // rounds 1 to 4 get no result, as if they were released
			h[task.RoundField(round, "worker")] = "good"
		}
		h["5:exit"], h["5:archived"] = "0", h["0:archived"]
	})
	all := expect.Result(a.Failures(t.Context(), manager.Query{States: task.States}, "")).Value(t)
	expect.MustLen(t, all.Groups, 1)
	expect.Len(t, found(t, m, manager.Query{Failure: all.Groups[0].ID}), 1, "found")
}

// If a query names a worker, only failed rounds of this worker count. Rounds that other workers ran for the same tasks
// do not count.
func TestFailuresOfAWorker(t *testing.T) {
	a, _ := onEmbedded(t)
	archive(t, a, 3, func(i int, h task.Hash) {
		setFailed(h, "1", "bad")
		h["round"], h["0:worker"] = "2", "other"
		h["1:worker"], h["1:failure"], h["1:exit"] = "good", "5", "1"
		h["2:worker"], h["2:failure"], h["2:exit"], h["2:archived"] = "good", "6", "1", h["0:archived"]
		if i == 2 {
			h["2:worker"] = "other"
		}
		for _, round := range []string{"1", "2"} {
			h[round+":error"], h[round+":executed"], h[round+":claim"] = "bad", "5", "c"
		}
	})
	for worker, want := range map[string]string{"good": "2 4 map[good:4]", "other": "1 2 map[other:2]", "": "3 9 map[good:5 other:4]"} {
		all := expect.Result(a.Failures(t.Context(), manager.Query{Worker: worker}, "")).Value(t)
		expect.MustLen(t, all.Groups, 1, worker)
		expect.Equal(t, fmt.Sprint(all.Groups[0].Tasks, all.Groups[0].Rounds, all.Groups[0].Workers), want, worker)
	}
}

// A thousand tasks fail in three ways. The pages together give the same groups as one page of all tasks. The ID of each
// group selects exactly the tasks of this group.
func TestFailuresOfPagesAddUp(t *testing.T) {
	a, m := onEmbedded(t)
	const many = 1000
	archive(t, a, many, func(i int, h task.Hash) {
		switch {
		case i%10 == 0:
			setFailed(h, "1", fmt.Sprintf("Traceback\n  x\nValueError: bad value %d\n", i))
		case i%25 == 3:
			setFailed(h, "signal: killed", strings.Repeat("long ", 1000))
		case i%50 == 7: // the task failed, was opened again, and succeeded
			h["round"], h["0:failure"], h["0:error"], h["0:exit"] = "1", h["0:executed"], "ValueError: bad value -1", "1"
			h["1:worker"], h["1:exit"], h["1:archived"] = "good", "0", h["0:archived"]
		}
	})
	boundless := listing.Bounds{Time: time.Hour, Tasks: 1 << 30, Bytes: 1 << 40}
	whole := expect.Result(failures(t.Context(), storeOf(a.redis()), task.Query{}, "", boundless)).Value(t)
	expect.MustEqual(t, whole.Next, "")
	expect.MustEqual(t, whole.Of, many)
	expect.MustEqual(t, whole.Looked, many)
	var pages Failures
	for n := 0; n == 0 || pages.Next != ""; n++ {
		page := expect.Result(failures(t.Context(), storeOf(a.redis()), task.Query{}, pages.Next, listing.Bounds{Time: time.Hour, Tasks: 150, Bytes: 20_000})).Value(t)
		expect.MustTrue(t, n <= many, n)
		pages.Merge(page)
	}
	expect.Equal(t, cmp.Diff(whole, pages), "", "in pages")
	var got []string
	for _, g := range whole.Groups {
		got = append(got, fmt.Sprintf("%d %d %s %.30s %d", g.Tasks, g.Rounds, g.How, g.Line, g.Workers["good"]))
		ids := found(t, m, manager.Query{Failure: g.ID[:6], Outcomes: []string{"failed"}})
		expect.True(t, len(ids) == g.Tasks, "group", g.ID, "has", g.Tasks, "tasks, and its ID finds", len(ids))
	}
	want := []string{"100 100 exit status 1 ValueError: bad value <n> 100", "40 40 signal: killed long long long long long long  40"}
	expect.Equal(t, got, want, "groups")
	expect.MustEqual(t, whole.Groups[0].First.Unix(), 1_800_000_000)
	expect.Equal(t, whole.Groups[0].Last.Unix(), 1_800_000_990)
	forgiven := expect.Result(failures(t.Context(), storeOf(a.redis()), task.Query{States: task.States}, "", boundless)).Value(t)
	expect.MustEqual(t, forgiven.Groups[0].Rounds, 120)
	expect.Equal(t, forgiven.Groups[0].Line, "ValueError: bad value <n>")
}

func found(t *testing.T, m *manager.Manager, q manager.Query) []int64 {
	t.Helper()
	var ids []int64
	for one, err := range m.List(t.Context(), q) {
		expect.NoError(t, err)
		ids = append(ids, one.ID)
	}
	return ids
}

func TestFailuresNameTheWorkerWhoseFaultItIs(t *testing.T) {
	a, _ := onEmbedded(t)
	archive(t, a, 200, func(i int, h task.Hash) {
		h["0:worker"] = []string{"good", "fine", "bad"}[i%3]
		if i%3 == 2 && i%2 == 0 || i%40 == 0 {
			setFailed(h, "1", "no disk")
		}
	})
	all := expect.Result(a.Failures(t.Context(), manager.Query{}, "")).Value(t)
	expect.MustLen(t, all.Suspects, 1)
	expect.MustEqual(t, all.Suspects[0].Worker, "bad")
	expect.Compare(t, all.Suspects[0].Failed, ">=", 30)
}

func TestRounds(t *testing.T) {
	const last, current = -100, -200
	a, _ := onEmbedded(t)
	archive(t, a, 2, func(i int, h task.Hash) {
		maps.Copy(h, task.Hash{
			"round": "5", "0:output": "first", "4:worker": "w", "4:output": "last", "4:error": "why", "5:open": "9", "state": "open", "outcome": "",
		})
		if i == 1 { // the task was cancelled before it ran again
			maps.Copy(h, task.Hash{"state": "expired", "5:expired": "10", "outcome": "cancelled"})
		}
	})
	for _, c := range []struct {
		id    int64
		round int // a number, or one of the constants last and current
		want  string
	}{
		{1, last, "round 4: last why"},
		{1, 4, "round 4: last why"},
		{1, 0, "round 0: first "},
		{1, 5, "round 5:  "},
		{1, 6, "there is no such round"},
		{1, current, "round 5:  "},
		{2, current, "round 4: last why"},
		{1, -3, "there is no such round"},
		{3, 0, "there is no such task"},
	} {
		read := func() (*manager.Task, *manager.Round, error) { return a.Round(t.Context(), c.id, c.round) }
		switch c.round {
		case last:
			read = func() (*manager.Task, *manager.Round, error) { return a.LastRun(t.Context(), c.id) }
		case current:
			read = func() (*manager.Task, *manager.Round, error) { return a.CurrentRound(t.Context(), c.id) }
		}
		_, r, err := read()
		got := ""
		if err == nil {
			got = fmt.Sprintf("round %d: %s %s", r.Number, r.Output, r.Error)
		} else {
			got = err.Error()
		}
		expect.Contains(t, got, c.want, "round", c.round, "of task", c.id)
	}
}

func TestChance(t *testing.T) {
	for _, c := range []struct {
		worker, others score
		want           float64
	}{
		{score{0, 5}, score{0, 5}, 1},
		{score{1, 1}, score{0, 1}, 0.5},
		{score{5, 5}, score{0, 5}, 1.0 / 252},
		{score{3, 4}, score{1, 4}, 17.0 / 70}, // the example of the lady tasting tea, from Fisher's book
		{score{4, 4}, score{0, 4}, 1.0 / 70},
		{score{2, 10}, score{15, 20}, 1 - (286+17*715)/30045015.0},
		{score{0, 0}, score{3, 9}, 1},
	} {
		got := c.worker.chance(c.others)
		expect.True(t, math.Abs(got-c.want) <= 1e-6, c.worker, "beside", c.others, got, "want", c.want)
	}
}

func TestSuspects(t *testing.T) {
	for name, c := range map[string]struct {
		workers map[string]score
		want    string
	}{
		"alone":           {map[string]score{"a": {50, 50}}, "[]"},
		"all fail":        {map[string]score{"a": {50, 50}, "b": {50, 50}}, "[]"},
		"one is bad":      {map[string]score{"a": {10, 10}, "b": {0, 10}, "c": {1, 12}}, "[a]"},
		"too few to tell": {map[string]score{"a": {3, 3}, "b": {0, 3}}, "[]"},
		"two failures":    {map[string]score{"a": {2, 2}, "b": {0, 1000}}, "[]"},
		"not twice":       {map[string]score{"a": {600, 1000}, "b": {400, 1000}}, "[]"},
		"small part":      {map[string]score{"a": {30, 1000}, "b": {2, 1000}, "c": {0, 1000}}, "[a]"},
		"two are bad":     {map[string]score{"a": {40, 40}, "b": {30, 30}, "c": {1, 300}}, "[a b]"},
	} {
		var names []string
		for _, s := range (scoreboard{"p": c.workers}).suspects() {
			names = append(names, s.Worker)
		}
		expect.Equal(t, fmt.Sprint(names), c.want, name)
	}
	many := map[string]score{}
	for i := range 1000 {
		many[fmt.Sprint("w", i)] = score{i % 3, 10}
	}
	expect.Len(t, (scoreboard{"p": many}).suspects(), 0, "among 1,000 equal workers, these are suspect")
}
