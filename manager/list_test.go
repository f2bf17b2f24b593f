package manager_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// ends are the possible results of rounds in a populated namespace.
var ends = []rules.Result{
	{Output: "fine", Exit: "0", Seconds: 3},
	{Output: "half", Error: "ValueError: bad value 17\n", Exit: "1", Seconds: 2},
	{Error: "killed", Exit: "signal: killed", Seconds: 1},
	{Error: "no run.sh"},
}

// populate opens many tasks and moves them to various states.
func populate(t testing.TB, s *redisstate.Store, m *manager.Manager, many int) {
	t.Helper()
	ctx := t.Context()
	for i := range many {
		d := define([]string{"sum", "sort", "sort-2"}[i%3], source, fmt.Sprintf("input %d", i))
		d.Group, d.FailOn, d.MaxFails = []string{"", "a", "b"}[rand.IntN(3)], tdf.FailOnExit, new(rand.IntN(2))
		d.Meta, d.Queue = fmt.Sprintf(`{"i":%d}`, i), []string{"", "", "", "slow"}[rand.IntN(4)]
		expect.Result(m.Open(ctx, d)).OK(t)
	}
	for range 2 {
		claimed := expect.Result(s.Claim(ctx, redisstate.ClaimParams{Worker: fmt.Sprint("w", rand.IntN(2)), Most: many * 2 / 3, Lease: 3600})).Value(t)
		for _, c := range claimed.Claims {
			takeOn(t, s, c)
		}
	}
}

// takeOn chooses at random what happens to a claimed task. takeOn keeps the task running, or executes the task and may
// settle it. After that, it may archive the task, or cancel it if it is open again.
func takeOn(t testing.TB, s *redisstate.Store, c redisstate.Claim) {
	t.Helper()
	if rand.IntN(8) == 0 {
		return
	}
	move, err := rules.Execute(c.Task, c.ID, ends[rand.IntN(len(ends))])
	apply(t, s, move, err)
	if rand.IntN(8) == 0 {
		return
	}
	settle(t, s, c.Task.ID)
	one := read(t, s, c.Task.ID)
	decide := rules.Archive
	if one.State == tdf.Open {
		decide = rules.Cancel
	}
	if rand.IntN(2) == 0 {
		move, err := decide(one)
		apply(t, s, move, err)
	}
}

func settle(t testing.TB, s *redisstate.Store, id int64) {
	t.Helper()
	now := expect.Result(s.Now(t.Context())).Value(t)
	m, ok := rules.Settle(read(t, s, id), now, nil)
	expect.MustTrue(t, ok, "nothing to settle about task", id)
	apply(t, s, m, nil)
}

// selects reports whether a query selects a task. All texts of the task must have been read. selects checks the
// conditions one by one, without Redis.
func selects(q manager.Query, t *task.Task) bool {
	last := t.Current()
	if last.Worker == "" && t.Round > 0 {
		last = t.Rounds.At(t.Round - 1)
	}
	program, _ := path.Match(q.Program, t.Program)
	entered := t.Current().Entered[t.State]
	exit := last.Exit == q.Exit || q.Exit == "signal" && strings.HasPrefix(last.Exit, "signal: ")
	return (len(q.IDs) == 0 || slices.Contains(q.IDs, t.ID)) &&
		(len(q.States) == 0 || slices.Contains(q.States, t.State)) &&
		(q.Group == "" || q.Group == t.Group) &&
		(len(q.Outcomes) == 0 || slices.Contains(q.Outcomes, t.Outcome)) &&
		(q.Queue == "" || q.Queue == t.Queue || q.Queue == class.DefaultQueue && t.Queue == "") &&
		(q.Program == "" || program) && (q.Worker == "" || last.Worker == q.Worker) && (q.Exit == "" || exit) &&
		strings.Contains(t.Input, q.Input) && !slices.ContainsFunc(q.Params, func(p string) bool { return t.Meta != fmt.Sprintf(`{"i":%s}`, p[len("i="):]) }) &&
		!entered.Std().Before(q.Since) && (q.Before.IsZero() || entered.Std().Before(q.Before)) &&
		strings.Contains(last.Output, q.Output) && strings.Contains(last.Error, q.Error)
}

// someQuery returns a query with random conditions.
func someQuery(times []time.Time) manager.Query {
	maybe := func(values ...string) string {
		if rand.IntN(3) > 0 {
			return ""
		}
		return values[rand.IntN(len(values))]
	}
	q := manager.Query{
		Group: maybe("a", "b", "c"), Queue: maybe(class.DefaultQueue, "slow", "none"), Program: maybe("sort", "so*", "?um", "none"), Worker: maybe("w0", "w1", "w2"),
		Exit: maybe("0", "1", "signal", "signal: killed"), Input: maybe("input 1", "put", "none"), Output: maybe("f", "half"), Error: maybe("Value", "run.sh"),
		Order: []manager.Order{manager.NewestFirst, manager.OldestFirst}[rand.IntN(2)],
	}
	for range rand.IntN(3) {
		q.States = append(q.States, task.States[rand.IntN(len(task.States))])
	}
	if rand.IntN(8) == 0 {
		q.Params = []string{fmt.Sprint("i=", rand.IntN(100))}
	}
	if rand.IntN(4) == 0 {
		q.Outcomes = []string{[]string{"succeeded", "failed", "cancelled"}[rand.IntN(3)]}
	}
	if rand.IntN(3) == 0 {
		q.Since = times[rand.IntN(len(times))]
	}
	if rand.IntN(3) == 0 {
		q.Before = times[rand.IntN(len(times))]
	}
	if rand.IntN(4) == 0 {
		q.IDs = []int64{7, 3, 9, 3, 500, 12, 40}
	}
	return q
}

// For any query, each selected task is on exactly one page, and no other task is on a page.
func TestPagesHaveExactlyTheSelectedTasks(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	const many = 150
	populate(t, s, m, many)
	var all []*task.Task
	times := []time.Time{{}}
	for id := range int64(many) {
		one := read(t, s, id+1)
		all = append(all, one)
		times = append(times, one.Current().Entered[one.State].Std())
	}
	found := 0
	for range 300 {
		q := someQuery(times)
		var want []int64
		for _, one := range all {
			if selects(q, one) {
				want = append(want, one.ID)
			}
		}
		got := pages(t, m, q)
		slices.Sort(got)
		expect.Equal(t, got, want, q, "found")
		found += len(got)
	}
	expect.True(t, found >= 300, "all queries together found only", found, "tasks; the test needs more conditions that match")
}

func pages(t *testing.T, m *manager.Manager, q manager.Query) []int64 {
	t.Helper()
	var ids []int64
	for after, most := "", 1+rand.IntN(60); ; {
		page := expect.Result(m.Page(t.Context(), q, after, most)).Value(t)
		expect.MustTrue(t, len(page.Tasks) <= most, "the page has", len(page.Tasks), "tasks and looked at", page.Looked, "want at most", most)
		expect.MustTrue(t, page.Looked >= len(page.Tasks), "the page has", len(page.Tasks), "tasks and looked at", page.Looked, "want at most", most)
		for _, one := range page.Tasks {
			expect.Equal(t, one.Input, fmt.Sprintf("input %d", one.ID-1), "task", one.ID)
			expect.Equal(t, one.Meta, fmt.Sprintf(`{"i":%d}`, one.ID-1), "task", one.ID)
			ids = append(ids, one.ID)
		}
		if after = page.Next; after == "" {
			return ids
		}
	}
}

func TestListOrders(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	open(t, m, "ok", "ok", "fail", "ok")
	run(t, m, manager.Callbacks{AllGroups: true})
	open(t, m, "later")
	for _, c := range []struct {
		q    manager.Query
		want string
	}{
		{manager.Query{Order: manager.OldestFirst}, "[1 2 3 4 5]"},
		{manager.Query{}, "[5 4 3 2 1]"},
		{manager.Query{Order: manager.ByID}, "[1 2 3 4 5]"},
		{manager.Query{IDs: []int64{4, 2}, Order: manager.ByID}, "[2 4]"},
		{manager.Query{IDs: []int64{4, 2, 9, 4, 5}}, "[4 2 5]"},
		{manager.Query{IDs: []int64{4, 2}, Order: manager.OldestFirst}, "[4 2]"},
		{manager.Query{Outcomes: []string{"failed"}}, "[3]"},
		{manager.Query{Error: "badly"}, "[3]"},
		{manager.Query{Group: "none"}, "[]"},
	} {
		got := []int64{}
		for one, err := range m.List(t.Context(), c.q) {
			expect.NoError(t, err)
			got = append(got, one.ID)
		}
		expect.Equal(t, fmt.Sprint(got), c.want, c.q, got)
	}
}

func TestInvalidQueries(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	open(t, m, "a", "b", "c")
	first := expect.Result(m.Page(t.Context(), manager.Query{}, "", 1)).Value(t)
	expect.MustTrue(t, first.Next != "", first)
	for _, c := range []struct {
		q     manager.Query
		after string
		most  int
		want  string
	}{
		{manager.Query{}, "", 0, "limit must be at least 1"},
		{manager.Query{Order: manager.ByID}, "", 1, "only List supports"},
		{manager.Query{Program: "a["}, "", 1, "invalid pattern"},
		{manager.Query{Queue: "a;b"}, "", 1, "contains \";\""},
		{manager.Query{Queue: strings.Repeat("q", 100_000)}, "", 1, "at most 64"},
		{manager.Query{Exit: "256"}, "", 1, "exit status"},
		{manager.Query{Exit: "07"}, "", 1, "exit status"},
		{manager.Query{Params: []string{"a=", "=b"}}, "", 1, "want NAME=VALUE"},
		{manager.Query{Failure: "xyz"}, "", 1, "8 hex digits"},
		{manager.Query{States: []tdf.State{"lost"}}, "", 1, "unknown state"},
		{manager.Query{}, "!", 1, "the cursor"},
		{manager.Query{}, "dGltZSB4", 1, "the cursor"},
		{manager.Query{}, "dGltZSBuYW4gNw", 1, "no valid position"}, // the cursor "time nan 7"
		{manager.Query{}, strings.Repeat("QUJD", 1<<16), 1, "the cursor"},
		{manager.Query{Group: "g"}, first.Next, 1, "the cursor"},
		{manager.Query{IDs: []int64{1}}, first.Next, 1, "the cursor"},
	} {
		_, err := m.Page(t.Context(), c.q, c.after, c.most)
		e := new(manager.QueryError)
		expect.MustTrue(t, errors.As(err, &e), c.q, "after", c.after, err, "want it to say", c.want)
		expect.Contains(t, err.Error(), c.want, c.after)
		expect.Compare(t, len(err.Error()), "<=", 300, c.after, c.want)
	}
	for _, hostile := range []string{"dGltZSAraW5mIP8", "aWRzIDFlMzAwIDc", "aWRzIC0xZTMwMCA3"} { // the cursors "time +inf \xff", "ids 1e300 7" and "ids -1e300 7"
		q := manager.Query{}
		if strings.HasPrefix(hostile, "aWRz") {
			q.IDs = []int64{1, 2}
		}
		expect.Result(m.Page(t.Context(), q, hostile, 10)).OK(t, hostile)
	}
}

func TestListEndsWithTheError(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for one, err := range tm.Manager.List(ctx, manager.Query{Program: "["}) {
		if n++; one != nil || err == nil {
			t.Errorf("got %v, %v", one, err)
		}
	}
	expect.Equal(t, n, 1, "tasks")
}
