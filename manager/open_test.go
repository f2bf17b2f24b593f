package manager_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

func TestOpenChecksAllBeforeItOpensAny(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	bad := define("p", "ftp://example.org/run.sh", "")
	ids, err := testspace.IDs(m.Open(t.Context(), define("p", source, "fine"), bad))
	e := new(tdf.PropertyError)
	expect.MustTrue(t, errors.As(err, &e), err, "want a *PropertyError about the source")
	expect.Equal(t, e.Property, "source")
	expect.Len(t, ids, 0)
	expect.Len(t, tm.Tasks(), 0)
}

// A number that was meant in seconds is a span in nanoseconds. Nothing stores it as 0.
func TestSpansInNanoseconds(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	d := define("p", source, "")
	short := time.Duration(3600)
	d.KeepArchived = &short
	_, err := tm.Manager.Open(t.Context(), d)
	expect.Fails(t, err, "keep_archived: 3.6µs is too short; a time.Duration counts nanoseconds: write 3600*time.Second")
	task := open(t, tm.Manager, "p")[0]
	five := time.Duration(5)
	result := expect.Result(tm.Manager.Update(t.Context(), manager.Changes{Backoff: &five}, manager.ByIDs(task)...)).Value(t)
	expect.Contains(t, fmt.Sprint(result.Skipped), "write 5*time.Second")
}

func TestZeroFieldsHaveTheDefaults(t *testing.T) {
	t.Parallel()
	defaults := manager.Definition{Timeout: 12 * time.Second, Group: "g", MaxFails: new(2), EndBefore: time.Unix(4e9, 0), FailOn: tdf.FailOnExit}
	tm := managertest.NewWith(t, manager.Options{TaskDefaults: defaults})
	tasks, err := tm.Manager.Open(t.Context(), define("p", source, "1 2"), manager.Definition{
		Program: "p", Source: source, Timeout: manager.NoTimeout, Group: "h", MaxFails: new(0), MaxLosses: new(0), EndBefore: manager.NoEnd(), FailOn: tdf.FailOnAny,
	})
	expect.NoError(t, err)
	for i, want := range []string{
		`{"id":1,"campaign":"g","program":"p","state":"open","round":0,"input":"1 2","source":"https://example.org/run.sh","end_before":"2096-10-02T07:06:40.000000Z","timeout":12,"fail_on":"exit","max_fails":2,"max_timeouts":0,"max_losses":3,`,
		`{"id":2,"campaign":"h","program":"p","state":"open","round":0,"source":"https://example.org/run.sh","fail_on":"any","max_fails":0,"max_timeouts":0,"max_losses":0,`,
	} {
		got := expect.Result(tasks[i].MarshalJSON()).Value(t)
		expect.True(t, strings.HasPrefix(string(got), want), got, "want", want, "…")
		expect.Equal(t, tm.Tasks()[i].Definition, tasks[i].Definition, "the task … Open")
	}
}

func TestRandomStartOffset(t *testing.T) {
	t.Parallel()
	tm := managertest.NewWith(t, manager.Options{AddRandomStartOffset: true})
	m, now := tm.Manager, tm.Now()
	past, future, soon := define("p", source, ""), define("p", source, ""), define("p", source, "")
	past.StartAfter = time.Unix(7, 0)
	future.StartAfter = now.Add(100 * time.Second)
	soon.StartAfter, soon.EndBefore = future.StartAfter, future.StartAfter.Add(100*time.Microsecond)
	different := map[time.Time]bool{}
	for range 20 {
		expect.Result(m.Open(t.Context(), past, future, soon)).OK(t)
	}
	for i, task := range tm.Tasks() {
		from := []time.Time{now, future.StartAfter, future.StartAfter}[i%3]
		offset := task.StartAfter.Sub(from).Seconds() * 1000
		expect.Compare(t, offset, ">=", -0.01, "task", task.ID)
		expect.Compare(t, offset, "<=", 999.01, "task", task.ID)
		expect.Compare(t, math.Abs(offset-math.Round(offset)), "<=", 0.01, "task", task.ID)
		if i%3 == 2 {
			expect.Compare(t, offset, "<=", 0.01, "task", task.ID)
		}
		different[task.StartAfter] = true
	}
	expect.True(t, len(different) >= 10, "only", len(different), "different moments")
	checkFollowUpsAreScattered(t, tm)
}

func checkFollowUpsAreScattered(t *testing.T, tm *managertest.Tester) {
	t.Helper()
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{} })
	before := len(tm.Tasks())
	first := true
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, task *manager.Finished) error {
			for range 20 {
				if first {
					task.Open(define("p", source, ""))
				}
			}
			first = false
			return nil
		},
	})
	scattered := 0
	for _, task := range tm.Tasks()[before:] {
		if !task.StartAfter.IsZero() {
			scattered++
		}
	}
	expect.Equal(t, scattered, 20, "of 20 follow-ups have an offset")
}

// If a task holds the unique key of a definition, Open returns that task, and says so. A new group can contain unique
// tasks, too (docs/lifecycle.md, "Unique tasks").
func TestOpenUnique(t *testing.T) {
	t.Parallel()
	tm := managertest.New(t)
	d := define("p", source, "a")
	d.Unique, d.Group = "k", "g"
	grouped := func(input string) manager.Definition {
		x := define("p", source, input)
		x.Group = "g"
		return x
	}
	first := expect.Result(tm.Manager.OpenGroup(t.Context(), d, grouped("plain"))).Value(t)
	expect.MustLen(t, first, 2)
	expect.MustTrue(t, !first[0].Existing, first)
	expect.MustTrue(t, !first[1].Existing, first)
	d.Input, d.Group = "b", "h"
	again := expect.Result(tm.Manager.Open(t.Context(), define("p", source, "c"), d)).Value(t)
	expect.MustLen(t, again, 2)
	expect.MustTrue(t, !again[0].Existing, again)
	expect.MustTrue(t, again[1].Existing, again)
	held := again[1]
	expect.Equal(t, held.ID, first[0].ID)
	expect.Equal(t, held.Input, "a")
	expect.Equal(t, held.Group, "g")
	expect.True(t, !held.Opened.IsZero(), held, "want the first task")
	d.Group = "g"
	expect.Result(tm.Manager.OpenGroup(t.Context(), d, grouped("d"))).FailsWith(t, manager.ErrGroupTaken, "a group that has tasks")
	expect.Equal(t, len(tm.Tasks()), 3, "tasks")
}

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
	tasks := expect.Result(tm.Manager.Open(t.Context(), step("join", 1, 2), step("left", 3), step("right", 3), step("start"))).Value(t)
	expect.MustLen(t, tasks, 4)
	for i, want := range [][]int64{{tasks[1].ID, tasks[2].ID}, {tasks[3].ID}} {
		got := tasks[i]
		expect.Equal(t, got.After.Tasks, want)
		expect.Len(t, got.After.Places, 0)
		expect.True(t, got.Waits, "Open returned task", got.ID, "with After", got.After, "waits", got.Waits)
	}
	join := get(t, tm.Manager, tasks[0].ID)
	expect.Equal(t, join.After.Tasks, []int64{tasks[1].ID, tasks[2].ID})
	expect.Equal(t, join.State, tdf.Open)
	var order []string
	run(t, tm.Manager, manager.Callbacks{AllGroups: true, Succeeded: func(_ context.Context, f *manager.Finished) error {
		order = append(order, f.Input)
		return nil
	}})
	expect.Equal(t, strings.Join(order, " "), "start left right join")
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
			expect.MustTrue(t, errors.As(err, new(*tdf.PropertyError)), err, "want", want)
			expect.Contains(t, err.Error(), want)
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
	run(t, tm.Manager, manager.Callbacks{AllGroups: true, Succeeded: func(_ context.Context, f *manager.Finished) error {
		order = append(order, f.Input)
		if f.Input == "first" {
			f.Open(after(define("p", source, "third"), &manager.Dependencies{Tasks: []int64{f.ID}, Places: []int{1}}), define("p", source, "second"))
		}
		return nil
	}})
	expect.Equal(t, strings.Join(order, " "), "first second third")
}
