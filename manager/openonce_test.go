package manager_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

func many(n int, change func(i int, d *manager.Definition)) []manager.Definition {
	all := make([]manager.Definition, n)
	for i := range all {
		all[i] = testspace.Define("p", "rsync:/p/run.sh", strconv.Itoa(i))
		change(i, &all[i])
	}
	return all
}

// Any client may repeat a call of OpenOnce: it opens nothing twice, and returns the same tasks.
func TestOpenOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		definitions []manager.Definition
		tasks       int64
	}{
		"one":           {many(1, func(int, *manager.Definition) {}), 1},
		"several calls": {many(700, func(int, *manager.Definition) {}), 700},
		"unique keys":   {many(30, func(i int, d *manager.Definition) { d.Unique = fmt.Sprint(i % 20) }), 20},
		"that wait for each other": {many(300, func(i int, d *manager.Definition) {
			if i > 0 {
				d.After = &manager.Dependencies{Places: []int{i - 1}}
			}
		}), 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testspace.Config(t, redistest.Shared(t))
			var want []int64
			for try := range 3 {
				m := testspace.Manager(t, cfg)
				ids := expect.Result(testspace.IDs(m.OpenOnce(t.Context(), "key", c.definitions...))).Value(t)
				expect.MustEqual(t, len(ids), len(c.definitions))
				if try == 0 {
					want = ids
				}
				expect.True(t, fmt.Sprint(ids) == fmt.Sprint(want), "try", try, "the ids", ids, "want", want)
				if counts, err := m.Counts(t.Context()); err != nil || counts.Total() != c.tasks {
					t.Errorf("try %d: %v, %v", try, counts, err)
				}
			}
			m := testspace.Manager(t, cfg)
			expect.Result(m.OpenOnce(t.Context(), "another key", c.definitions[0])).OK(t)
			if _, err := m.OpenOnce(t.Context(), "key", testspace.Define("q", "rsync:/p/run.sh", "1")); !errors.Is(err, manager.ErrOtherRequest) || tdf.CodeOf(err) != tdf.CodeConflict {
				t.Errorf("other definitions: %v", err)
			}
		})
	}
}

// Clients that make the same call at the same time open the tasks once.
func TestOpenOnceAtTheSameTime(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	definitions := many(600, func(int, *manager.Definition) {})
	var all sync.Map
	var calls sync.WaitGroup
	for range 5 {
		m := testspace.Manager(t, cfg)
		calls.Go(func() {
			ids, err := testspace.IDs(m.OpenOnce(t.Context(), "key", definitions...))
			all.Store(fmt.Sprint(ids, err), true)
		})
	}
	calls.Wait()
	n := 0
	for range all.Range {
		n++
	}
	expect.Equal(t, expect.Result(testspace.Manager(t, cfg).Counts(t.Context())).Value(t).Total(), 600, n)
	expect.Equal(t, n, 1)
}

// A call that Redis refused, or that ended in the middle, can be repeated: only the missing tasks are opened.
func TestOpenOnceAfterARefusal(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	client := testspace.Client(t, cfg)
	definitions := many(700, func(int, *manager.Definition) {})
	limit := func(n string) { client.HSet(t.Context(), cfg.Namespace+":settings", "max_tasks", n) }
	limit("600")
	_, err := testspace.Manager(t, cfg).OpenOnce(t.Context(), "key", definitions...)
	expect.MustTrue(t, errors.As(err, new(*tdf.TasksLimitError)), err)
	if counts, err := testspace.Manager(t, cfg).Counts(t.Context()); err != nil || counts.Total() != 500 {
		t.Fatal(counts, err)
	}
	expect.Result(testspace.Manager(t, cfg).OpenOnce(t.Context(), "key", definitions...)).Fails(t, "", "the limit no longer holds")
	limit("inf")
	for range 2 {
		ids, err := testspace.IDs(testspace.Manager(t, cfg).OpenOnce(t.Context(), "key", definitions...))
		if counts, _ := testspace.Manager(t, cfg).Counts(t.Context()); err != nil || counts.Total() != 700 || len(ids) != 700 || ids[699] != 700 {
			t.Errorf("%d tasks, %v", counts.Total(), err)
		}
	}
	for _, key := range client.Keys(t.Context(), cfg.Namespace+":calls:once-*").Val() {
		life := client.TTL(t.Context(), key).Val()
		expect.Compare(t, life, ">=", 23*time.Hour, key)
		expect.Compare(t, life, "<=", 24*time.Hour, key)
	}
}

// A repeated call needs neither the programs nor the dependencies of the tasks that it has opened.
func TestOpenOnceAfterTheDependencyIsGone(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	first := expect.Result(m.Open(t.Context(), testspace.Define("p", "rsync:/p/run.sh", "1"))).Value(t)
	next := testspace.Define("p", "rsync:/p/run.sh", "2")
	next.After = &manager.Dependencies{Tasks: []int64{first[0].ID}}
	opened := expect.Result(m.OpenOnce(t.Context(), "key", next)).Value(t)
	if result, err := m.Cancel(t.Context(), first[0].Ref()); err != nil || result.Done != 1 {
		t.Fatal(result, err)
	}
	again := expect.Result(testspace.Manager(t, cfg).OpenOnce(t.Context(), "key", next)).Value(t)
	expect.Equal(t, again[0].ID, opened[0].ID)
}

// A query for an owner selects only the tasks that this token has opened.
func TestQueryOfOwner(t *testing.T) {
	t.Parallel()
	m := testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	mine, others := testspace.Define("p", "rsync:/p/run.sh", "1"), testspace.Define("p", "rsync:/p/run.sh", "2")
	mine.Owner, mine.CorrelationID, others.Owner = "ci", "call-1", "ci2"
	expect.Result(m.Open(t.Context(), mine, others, testspace.Define("p", "rsync:/p/run.sh", "3"))).OK(t)
	for owner, want := range map[string]string{"ci": "[1]", "ci2": "[2]", "c": "[]", "*": "[]"} {
		ids := []int64{}
		for task, err := range m.List(t.Context(), manager.Query{Owner: owner}) {
			expect.NoError(t, err)
			if ids = append(ids, task.ID); owner == "ci" && task.CorrelationID != "call-1" {
				t.Errorf("the correlation id is %q", task.CorrelationID)
			}
		}
		expect.True(t, fmt.Sprint(ids) == want, "owner", owner, ids, "want", want)
	}
}

// Calls of OpenOnce and Open at the same time on one manager do not share their answers.
func TestOpenOnceAmongOtherOpens(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	var calls sync.WaitGroup
	var first sync.Map
	for i := range 40 {
		calls.Go(func() {
			expect.Result(m.Open(t.Context(), testspace.Define("plain", "rsync:/p/run.sh", "1"))).OK(t)
		})
		calls.Go(func() {
			tasks, err := m.OpenOnce(t.Context(), fmt.Sprint(i), testspace.Define("once", "rsync:/p/run.sh", fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
				return
			}
			first.Store(i, tasks[0].ID)
		})
	}
	calls.Wait()
	for i := range 40 {
		tasks := expect.Result(m.OpenOnce(t.Context(), fmt.Sprint(i), testspace.Define("once", "rsync:/p/run.sh", fmt.Sprint(i)))).Value(t)
		task, err := m.Get(t.Context(), tasks[0].ID)
		if was, _ := first.Load(i); err != nil || was != tasks[0].ID || task.Program != "once" || task.Input != fmt.Sprint(i) {
			t.Errorf("call %d: task %d, then %d with input %q of program %s, %v", i, was, tasks[0].ID, task.Input, task.Program, err)
		}
	}
	if counts, err := m.Counts(t.Context()); err != nil || counts.Total() != 80 {
		t.Errorf("%v, %v", counts, err)
	}
}
