package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/manager"
)

func after(d manager.Definition, strict *manager.Dependencies) manager.Definition {
	d.After = strict
	return d
}

// Tasks of one call can wait for each other, in any order. Run calls their callbacks in the order of the graph.
func TestOpenGraph(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	step := func(input string, places ...int) manager.Definition {
		return after(define("p", source, input), &manager.Dependencies{Places: places})
	}
	tasks, err := tm.Manager.Open(t.Context(), step("join", 1, 2), step("left", 3), step("right", 3), step("start"))
	expect.MustTrue(t, err == nil && len(tasks) == 4, tasks, err)
	for i, want := range [][]int64{{tasks[1].ID, tasks[2].ID}, {tasks[3].ID}} {
		if got := tasks[i]; !slices.Equal(got.After.Tasks, want) || len(got.After.Places) > 0 || !got.Waits {
			t.Errorf("Open returned task %d with After %+v, waits: %t", got.ID, got.After, got.Waits)
		}
	}
	join := get(t, tm.Manager, tasks[0].ID)
	expect.True(t, slices.Equal(join.After.Tasks, []int64{tasks[1].ID, tasks[2].ID}) && join.State == tdf.Open, join)
	var order []string
	run(t, tm.Manager, manager.Callbacks{Succeeded: func(_ context.Context, f *manager.Finished) error {
		order = append(order, f.Input)
		return nil
	}})
	expect.Equal(t, strings.Join(order, " "), "start left right join")
}

// A graph that needs several calls is opened in the order of its dependencies.
func TestOpenLargeGraph(t *testing.T) {
	t.Parallel()
	m := newManager(t, redisConfig(t, redistest.Shared(t)))
	chain := make([]manager.Definition, 1000)
	for i := range chain {
		chain[i] = define("p", source, fmt.Sprint(i))
		if i+1 < len(chain) { // each task waits for the next one of the call
			chain[i].AfterAny = &manager.Dependencies{Places: []int{i + 1}}
		}
	}
	tasks, err := m.Open(t.Context(), chain...)
	expect.MustTrue(t, err == nil && len(tasks) == len(chain), len(tasks), err)
	for i := range len(chain) - 1 {
		got := get(t, m, tasks[i].ID)
		expect.MustTrue(t, got.Input == fmt.Sprint(i) && slices.Equal(got.AfterAny.Tasks, []int64{tasks[i+1].ID}), "task", i, got)
	}
}

// If a dependency is impossible, Open opens nothing, and neither does a step.
func TestOpenRefusesDependencies(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	cancelled := openTask(t, m, "c")
	expect.Result(m.Cancel(t.Context(), cancelled.Ref())).OK(t)
	d := define("p", source, "x")
	for want, all := range map[string][]manager.Definition{
		"there is no task 77":                    {d, after(d, &manager.Dependencies{Tasks: []int64{77}})},
		"task 1: cancelled; retry it first":      {d, after(d, &manager.Dependencies{Tasks: []int64{1}})},
		`group "g" has no tasks`:                 {d, after(d, &manager.Dependencies{Group: "g"})},
		"the call has no place 2":                {d, after(d, &manager.Dependencies{Places: []int{2}})},
		"their places in the call are 0 → 1 → 0": {after(d, &manager.Dependencies{Places: []int{1}}), after(d, &manager.Dependencies{Places: []int{0}})},
		"after: -3 is not the id of a task":      {d, after(d, &manager.Dependencies{Tasks: []int64{-3}})},
	} {
		x := m.Transaction()
		x.Open(all...)
		_, committed := x.Commit(t.Context())
		_, opened := m.Open(t.Context(), all...)
		for _, err := range []error{committed, opened} {
			expect.True(t, errors.As(err, new(*tdf.PropertyError)) && strings.Contains(err.Error(), want), err, "want", want)
		}
	}
	expect.Equal(t, len(tm.Tasks()), 1, "tasks")
}

// A follow-up can wait for the task that opened it, and the tasks of a step for each other.
func TestFollowUpsWait(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	open(t, tm.Manager, "first")
	var order []string
	run(t, tm.Manager, manager.Callbacks{Succeeded: func(_ context.Context, f *manager.Finished) error {
		order = append(order, f.Input)
		if f.Input == "first" {
			f.Open(after(define("p", source, "third"), &manager.Dependencies{Tasks: []int64{f.ID}, Places: []int{1}}), define("p", source, "second"))
		}
		return nil
	}})
	expect.Equal(t, strings.Join(order, " "), "first second third")
}
