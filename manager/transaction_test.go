package manager_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

// get reads a task that exists.
func get(t *testing.T, m *manager.Manager, id int64) *manager.Task {
	t.Helper()
	return expect.Result(m.Get(t.Context(), id)).Value(t)
}

// finishedTasks opens tasks, and runs them without archiving them.
func finishedTasks(t *testing.T, tm *managertest.Tester, inputs ...string) []*manager.Task {
	t.Helper()
	ids := open(t, tm.Manager, inputs...)
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(context.Context, *manager.Finished) error { return manager.ErrNotYet },
		Stop: func(_ context.Context, s manager.Summary) bool {
			return s.Counts[tdf.Open]+s.Counts[tdf.Running]+s.Counts[tdf.Executed] == 0
		},
	})
	tasks := make([]*manager.Task, len(ids))
	for i, id := range ids {
		tasks[i] = get(t, tm.Manager, id)
	}
	return tasks
}

func openTask(t *testing.T, m *manager.Manager, input string) *manager.Task {
	t.Helper()
	return get(t, m, open(t, m, input)[0])
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	done := finishedTasks(t, tm, "a", "b", "c", "removed")
	waiting := openTask(t, m, "d")
	cancelled := openTask(t, m, "e")
	later := expect.Result(m.Open(t.Context(), define("p", source, "f"))).Value(t)
	x := m.Transaction()
	x.Open(define("p", source, "g"), define("p", source, "h"))
	x.Archive(done[0])
	x.Retry(manager.Changes{Input: new("again")}, done[1])
	x.Require(done[2])
	x.Remove(done[3])
	x.Update(manager.Changes{Meta: new("changed")}, waiting)
	x.Cancel(cancelled, later[0]) // a task that Open returned can be named, too
	opened := expect.Result(x.Commit(t.Context())).Value(t)
	expect.MustLen(t, opened, 2)
	expect.MustEqual(t, opened[0].ID, 8)
	expect.MustEqual(t, opened[1].Input, "h")
	var got []string
	for _, one := range tm.Tasks() {
		got = append(got, fmt.Sprint(one.ID, " ", one.State, " ", one.Round, " ", one.Input, " ", one.Meta))
	}
	want := []string{"1 archived 0 a ", "2 open 1 again ", "3 succeeded 0 c ", "5 open 0 d changed", "6 expired 0 e ", "7 expired 0 f ", "8 open 0 g ", "9 open 0 h "}
	expect.Equal(t, got, want)
}

// A refused transaction changes nothing, and its error lists all tasks that have changed.
func TestTransactionRefused(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	done := finishedTasks(t, tm, "a", "b", "c", "d")
	waiting, same := openTask(t, m, "e"), openTask(t, m, "f")
	x := m.Transaction()
	x.Open(define("p", source, "new"))
	x.Archive(done[0], done[3])
	x.Retry(manager.Changes{}, done[1])
	x.Require(done[2], waiting, same)
	act := func(_ manager.Result, err error) {
		expect.NoError(t, err)
	}
	act(m.Archive(t.Context(), done[0].Ref()))
	act(m.Retry(t.Context(), manager.Changes{}, done[1].Ref()))
	act(m.Remove(t.Context(), done[2].Ref()))
	act(m.Update(t.Context(), manager.Changes{Meta: new("m")}, waiting.Ref()))
	before := tm.Tasks()
	_, err := x.Commit(t.Context())
	var refused *manager.StepError
	expect.MustTrue(t, errors.As(err, &refused), err)
	want := "commit transaction: task 1 has changed: want succeeded in round 0, found archived in round 0; " +
		"task 2 has changed: want succeeded in round 0, found open in round 1; " +
		"task 3 has changed: want succeeded in round 0, found no such task; " +
		"task 5 has changed: want open in round 0, found open in round 0, revision 1"
	expect.Equal(t, err.Error(), want)
	expect.MustLen(t, refused.Changed, 4)
	expect.Equal(t, refused.Changed[1].Action, rules.VerbReopen)
	after := tm.Tasks()
	expect.True(t, reflect.DeepEqual(before, after), "the transaction changed", before, "to", after)
}

// An impossible transaction changes nothing, and its error says why.
func TestImpossibleTransactions(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	keyed := define("p", source, "k")
	keyed.Unique = "key"
	first := expect.Result(m.Open(t.Context(), keyed)).Value(t)
	expect.Result(m.Cancel(t.Context(), first[0].Ref())).OK(t)
	expect.Result(m.Open(t.Context(), keyed)).OK(t)
	finished, waiting := get(t, m, 1), openTask(t, m, "x")
	past := tm.Now().Add(-1)
	for name, c := range map[string]struct {
		add  func(x *manager.Transaction)
		want string
		is   any
	}{
		"twice":    {func(x *manager.Transaction) { x.Cancel(waiting); x.Require(waiting) }, "task 3 occurs twice", nil},
		"too many": {func(x *manager.Transaction) { x.Require(slices.Repeat([]*manager.Task{waiting}, manager.MaxStep+1)...) }, "1001 tasks are too many", nil},
		"too many new": {func(x *manager.Transaction) {
			x.Require(waiting)
			x.Open(slices.Repeat([]manager.Definition{define("p", source, "x")}, manager.MaxStep)...)
		}, "1001 tasks are too many", nil},
		"too long": {func(x *manager.Transaction) {
			x.Open(slices.Repeat([]manager.Definition{define("p", source, strings.Repeat("x", 100_000))}, 50)...)
		}, "bytes in total, at most 4194304 are possible", nil},
		"invalid":       {func(x *manager.Transaction) { x.Cancel(waiting); x.Open(define("", source, "")) }, "program: is empty", new(*tdf.PropertyError)},
		"wrong state":   {func(x *manager.Transaction) { x.Archive(waiting); x.Cancel(finished) }, "archive task 3: it is open in round 0; cancel task 1: it is expired in round 0", new(*tdf.StateError)},
		"not finished":  {func(x *manager.Transaction) { x.Remove(waiting) }, "remove task 3: it is open in round 0", new(*tdf.StateError)},
		"key":           {func(x *manager.Transaction) { x.Retry(manager.Changes{}, finished) }, "task 1: task 2 holds its unique key", new(*tdf.UniqueError)},
		"past":          {func(x *manager.Transaction) { x.Retry(manager.Changes{EndBefore: &past}, finished) }, "reopen task 1: its end_before or claim_before is past", nil},
		"no change":     {func(x *manager.Transaction) { x.Update(manager.Changes{Input: &waiting.Input}, waiting) }, "change task 3: it already has these values", nil},
		"invalid value": {func(x *manager.Transaction) { x.Update(manager.Changes{MaxFails: new(-1)}, waiting) }, "max_fails: -1", new(*tdf.PropertyError)},
	} {
		t.Run(name, func(t *testing.T) {
			before := tm.Tasks()
			x := m.Transaction()
			c.add(x)
			opened, err := x.Commit(t.Context())
			expect.Equal(t, opened, nil, c.want)
			expect.Fails(t, err, c.want)
			if c.is != nil {
				expect.True(t, errors.As(err, c.is), opened, err, "want", c.want)
			}
			expect.Result(x.Commit(t.Context())).FailsWith(t, manager.ErrCommitted, "a second commit")
			after := tm.Tasks()
			expect.True(t, reflect.DeepEqual(before, after), "the transaction changed", before, "to", after)
		})
	}
	expect.Equal(t, expect.Result(m.Transaction().Commit(t.Context())).Value(t), nil)
}

// After a failover, another claim may have run the round that the caller has seen.
func TestTransactionNamesTheClaim(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg)
	id := open(t, m, "x")[0]
	succeed(t, connect(t, cfg), id)
	seen := get(t, m, id)
	expect.NoError(t, testspace.Client(t, cfg).HSet(t.Context(), fmt.Sprint(cfg.Namespace, ":task:", id), "0:claim", "another").Err())
	x := m.Transaction()
	x.Archive(seen)
	expect.Result(x.Commit(t.Context())).Fails(t, "it is succeeded in round 0, but another claim has run the round")
}

// A StepError with many reasons has a short text.
func TestManyReasons(t *testing.T) {
	t.Parallel()
	e := &manager.StepError{Changed: make([]manager.ChangedTask, 999)}
	text := e.Error()
	expect.True(t, strings.HasSuffix(text, "; and 989 more"), text)
	expect.Compare(t, len(text), "<=", 1000)
}

// A transaction can name a unique key, and returns the task that holds it.
func TestTransactionWithAKey(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	keyed := define("p", source, "k")
	keyed.Unique = "key"
	for i := range 2 {
		x := tm.Manager.Transaction()
		x.Open(keyed, define("p", source, "plain"))
		opened := expect.Result(x.Commit(t.Context())).Value(t)
		expect.MustEqual(t, opened[0].ID, 1)
		expect.MustEqual(t, opened[0].Existing, i == 1)
		expect.MustTrue(t, !opened[1].Existing, opened)
		expect.Equal(t, opened[1].ID, int64(2+i))
	}
}

// Many managers add 1 to a number in the meta of a task, and open a task for each addition. No addition is lost, and none
// happens twice, although replies of Redis are lost.
func TestTransactionsAreSerialized(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"embedded": testspace.Embedded(t), "real": redistest.Shared(t)} {
		t.Run(name, func(t *testing.T) {
			const managers, additions = 4, 8
			proxy := redistest.NewProxy(t, addr)
			cfg := redisConfig(t, proxy.Addr)
			open(t, newManager(t, cfg), "counter")
			proxy.DropReplies(20, redistest.Scripts)
			var all sync.WaitGroup
			for range managers {
				m := newManager(t, cfg)
				all.Go(func() {
					for range additions {
						addOne(t, m)
					}
				})
			}
			all.Wait()
			m := newManager(t, cfg)
			counts, err := m.Counts(t.Context())
			got := get(t, m, 1).Meta
			expect.NoError(t, err)
			expect.Equal(t, got, fmt.Sprint(managers*additions))
			expect.Equal(t, counts.Total(), 1+managers*additions)
		})
	}
}

// addOne adds 1 to the number in the meta of task 1. If another manager was faster, it tries again.
func addOne(t *testing.T, m *manager.Manager) {
	for {
		counter, err := m.Get(t.Context(), 1)
		if err != nil {
			t.Error(err)
			return
		}
		n, _ := strconv.Atoi(counter.Meta)
		x := m.Transaction()
		x.Update(manager.Changes{Meta: new(strconv.Itoa(n + 1))}, counter)
		x.Open(define("p", source, "added"))
		_, err = x.Commit(t.Context())
		if err == nil {
			return
		}
		if e := new(manager.StepError); !errors.As(err, &e) || len(e.Changed) != 1 {
			t.Error(err)
			return
		}
	}
}

// A callback can archive, retry and require other tasks, together with its own task. Then no callback runs for them.
func TestStepOfACallback(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	open(t, tm.Manager, "a", "b", "c", "last")
	retried := map[int64]bool{}
	var called []string
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(ctx context.Context, one *manager.Finished) error {
			if one.Input != "last" && tm.Tasks()[3].State == tdf.Open {
				return manager.ErrNotYet
			}
			called = append(called, fmt.Sprint(one.Input, one.Round))
			if one.ID != 1 || retried[2] {
				return nil
			}
			retried[2] = true
			one.Archive(get(t, tm.Manager, 3))
			one.Retry(manager.Changes{}, get(t, tm.Manager, 2))
			one.Require(get(t, tm.Manager, 4))
			one.Open(define("p", source, "next"))
			return nil
		},
	})
	slices.Sort(called)
	want := []string{"a0", "b1", "last0", "next0"}
	expect.True(t, slices.Equal(called, want), "called", called, "want", want)
	expect.Equal(t, len(tm.In(tdf.Archived)), 5, "tasks are archived")
}

// If a required task has changed, the callback's task stays, and its callback runs again.
func TestRefusedStepOfACallback(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	open(t, tm.Manager, "a")
	later := define("p", source, "x")
	later.StartAfter = tm.Now().Add(time.Hour)
	guard := expect.Result(tm.Manager.Open(t.Context(), later)).Value(t)
	calls := 0
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, one *manager.Finished) error {
			if calls++; calls == 1 {
				seen := get(t, tm.Manager, guard[0].ID)
				_, err := tm.Manager.Update(t.Context(), manager.Changes{Meta: new("m")}, seen.Ref())
				expect.True(t, err == nil, err)
				one.Require(seen)
				one.Open(define("p", source, "never"))
				return nil
			}
			one.Cancel(get(t, tm.Manager, guard[0].ID))
			return nil
		},
	})
	expect.Equal(t, calls, 2)
	expect.Len(t, tm.Tasks(), 2, calls)
	expect.Len(t, tm.In(tdf.Archived), 2, calls)
	expect.Equal(t, log.Count("step of the callback: task 2 has changed: want open in round 0, found open in round 0, revision 1"), 1, log.String())
}
