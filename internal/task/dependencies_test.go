package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func waiting(strict, loose *Dependencies) Properties {
	d := Defaults("p", "rsync:/p/run.sh", "1")
	d.Group, d.After, d.AfterAny = "own", strict, loose
	return d
}

func TestDependenciesRefuses(t *testing.T) {
	many := make([]int64, MaxDependencies+1)
	for i := range many {
		many[i] = int64(i + 1)
	}
	for want, d := range map[string]Properties{
		"after: the task waits for 10001 tasks":     waiting(&Dependencies{Tasks: many}, nil),
		"after: the task waits for 10002":           waiting(&Dependencies{Tasks: many[:5000]}, &Dependencies{Tasks: many[:5001], Group: "g"}),
		"after: 0 is not the id of a task":          waiting(&Dependencies{Tasks: []int64{0}}, nil),
		"after_any: -1 is not the id of a task":     waiting(nil, &Dependencies{Tasks: []int64{1, -1}}),
		"after_group: a task cannot wait for its":   waiting(&Dependencies{Group: "own"}, nil),
		`after_group_any: "a\n" contains a control`: waiting(nil, &Dependencies{Group: "a\n"}),
		"after_group: has 201 bytes":                waiting(&Dependencies{Group: strings.Repeat("x", 201)}, nil),
		`after_group: "\xff" is not valid UTF-8`:    waiting(&Dependencies{Group: "\xff"}, nil),
	} {
		err := d.Validate()
		expect.MustTrue(t, errors.As(err, new(*PropertyError)), err, "want", want)
		expect.True(t, strings.HasPrefix(err.Error(), want), err, "want", want)
	}
	empty := waiting(&Dependencies{}, &Dependencies{})
	err := empty.Validate()
	expect.NoError(t, err)
	expect.True(t, !empty.HasDependencies(), err, empty.FirstPlace())
	expect.Equal(t, empty.FirstPlace(), "")
}

// A new task has all of its dependencies in its properties, each of them once. ParseTask reads them again.
func TestDependencyProperties(t *testing.T) {
	d := waiting(&Dependencies{Tasks: []int64{7, 3, 7}, Places: []int{1, 0, 1}}, &Dependencies{Tasks: []int64{3}, Group: "g"})
	d.Priority = 5
	h := Hash{}
	for _, f := range d.OpenFields("ns") {
		h[f.Name] = f.Value
	}
	for name, want := range map[string]string{
		"after": "3,7,#1,#2", "after_any": "3", "after_group": "", "after_group_any": "g", "links": "6", "place": "waiting",
	} {
		expect.Equal(t, h[name], want, name, "=")
	}
	task, err := ParseTask(9, h)
	if err != nil || fmt.Sprintln(task.After.Tasks, task.AfterAny.Tasks, task.AfterAny.Group) != "[3 7] [3] g\n" || task.Links != 6 || !task.Waits() || task.Place() != "priority=5" {
		t.Errorf("%+v, %v", task, err)
	}
}

func TestInOrder(t *testing.T) {
	call := func(places ...[]int) []Properties {
		all := make([]Properties, len(places))
		for i := range all {
			all[i] = waiting(nil, &Dependencies{Places: places[i]})
			if i%2 == 0 {
				all[i] = waiting(&Dependencies{Places: places[i]}, nil)
			}
		}
		return all
	}
	for _, c := range []struct {
		all  []Properties
		want string
	}{
		{call(nil, nil, nil), "[0 1 2] <nil>"},
		{call([]int{2}, []int{0, 2}, nil), "[2 0 1] <nil>"},
		{call(nil, []int{0, 0}, []int{0}, []int{1, 2}), "[0 1 2 3] <nil>"},
		{call([]int{0}), "[] after: tasks wait for each other; their places in the call are 0 → 0"},
		{call(nil, []int{3, 0}, []int{1}, []int{2}, []int{3}), "[] after: tasks wait for each other; their places in the call are 1 → 3 → 2 → 1"},
		{call(nil, []int{2}), "[] task 2 of 2: after: the call has no place 2; places count from 0"},
		{call([]int{-1}), "[] task 1 of 1: after: the call has no place -1; places count from 0"},
	} {
		order, err := InOrder(c.all)
		expect.Equal(t, fmt.Sprint(order, err), c.want)
	}
	// Definitions with the same unique key are one task.
	same := call([]int{1}, nil, []int{1})
	same[0].Unique, same[1].Unique = "k", "k"
	if _, err := InOrder(same); err == nil || !strings.HasSuffix(err.Error(), "0 → 0") {
		t.Error(err)
	}
	same[0].AfterAny, same[0].After = nil, nil
	expect.Equal(t, fmt.Sprint(expect.Result(InOrder(same)).Value(t)), "[0 1 2]")
	// The first definition with a key opens the task, so it comes first.
	first := call(nil, []int{2}, []int{3}, nil)
	first[0].Unique, first[2].Unique = "k", "k"
	first[0].After = &Dependencies{Places: []int{3}}
	if order, err := InOrder(first); err != nil || slices.Index(order, 2) < slices.Index(order, 0) || slices.Index(order, 1) < slices.Index(order, 0) {
		t.Error(order, err)
	}
	first[3].AfterAny = &Dependencies{Places: []int{3}}
	if _, err := InOrder(first); err == nil || !strings.HasSuffix(err.Error(), "3 → 3") {
		t.Error(err)
	}
	ring := make([][]int, 100_000)
	for i := range ring {
		ring[i] = []int{(i + 1) % len(ring)}
	}
	if _, err := InOrder(call(ring...)); err == nil || len(err.Error()) > 200 || !strings.HasSuffix(err.Error(), "8 → 9 → … → 0") {
		t.Error(err)
	}
	ring[len(ring)-1] = nil
	order := expect.Result(InOrder(call(ring...))).Value(t)
	expect.MustEqual(t, len(order), len(ring))
	expect.Equal(t, order[0], len(ring)-1)
	expect.True(t, slices.IsSortedFunc(order, func(a, b int) int { return b - a }), order)
}

// The server decides about a waiting task by what it has looked up.
func TestSettleWaiting(t *testing.T) {
	task := func(change func(*Task)) *Task {
		t := &Task{ID: 7, Properties: waiting(nil, nil), State: Open, PlacedIn: WaitingPlace, Links: 3, Rounds: Rounds{0: {Linked: 3}}}
		t.EndBefore = 100
		change(t)
		return t
	}
	for _, c := range []struct {
		what   string
		change func(*Task)
		want   string // the verb and the next time
	}{
		{"nothing is looked up", func(t *Task) { t.Current().Linked = 0 }, " 100 true"},
		{"two of three are looked up", func(t *Task) { t.Current().Linked = 2 }, " 100 true"},
		{"one has not ended", func(t *Task) { t.Current().Waits = 1 }, " 100 false"},
		{"all have ended", func(*Task) {}, "unblock 0 false"},
		{"one is not met", func(t *Task) { t.Current().Unmet, t.Current().Waits = "task 3: failed", 1 }, "reject 0 false"},
		{"it expires", func(t *Task) { t.EndBefore, t.Current().Waits = 50, 1 }, "expire 50 false"},
		{"another program has removed its dependencies", func(t *Task) { t.Links = 0 }, "unblock 0 false"},
	} {
		x := task(c.change)
		m, ok := x.Settle(50, nil)
		expect.Equal(t, fmt.Sprint(m.Verb, " ", x.NextDue(50), " ", x.MustLink()), c.want, c.what)
		expect.Equal(t, ok, m.Verb != "", c.what, c.want)
	}
	m, _ := task(func(t *Task) { t.Queue = "q" }).Settle(50, nil)
	expect.True(t, slices.Contains(m.Set, Field{FieldPlace, "queue=q"}), m.Set)
	if m, _ := task(func(*Task) {}).Settle(50, nil); !slices.Contains(m.Clear, FieldPlace) {
		t.Error(m.Clear)
	}
}

// A retry begins where a new task begins, and a change leaves a task where it waits.
func TestPlacesOfWaitingTasks(t *testing.T) {
	failed := &Task{ID: 7, Properties: waiting(nil, nil), State: Failed, Links: 1, Rounds: Rounds{0: {}}}
	m, err := failed.Reopen()
	expect.NoError(t, err)
	expect.True(t, slices.Contains(m.Set, Field{FieldPlace, WaitingPlace}), m, err)
	m, err = failed.ReopenWith(Changes{Queue: new("q")})
	expect.NoError(t, err)
	expect.True(t, slices.Contains(m.Set, Field{FieldPlace, WaitingPlace}), m, err)
	cancelled := &Task{ID: 7, Properties: waiting(nil, nil), State: Expired, PlacedIn: "limit=db", Rounds: Rounds{0: {}}}
	if m, err := cancelled.Reopen(); err != nil || !slices.Contains(m.Clear, FieldPlace) {
		t.Error(m, err)
	}
	open := &Task{ID: 7, Properties: waiting(nil, nil), State: Open, PlacedIn: WaitingPlace, Links: 1, Rounds: Rounds{0: {}}}
	m, err = open.Change(Changes{Queue: new("q"), EndBefore: new(Time(100).Std())})
	expect.NoError(t, err)
	expect.True(t, slices.Contains(m.Set, Field{FieldPlace, WaitingPlace}), m, err)
}

// Unfinished dependents keep a task, whatever its retention period is.
func TestDependentsKeepATask(t *testing.T) {
	d := waiting(nil, nil)
	d.KeepFinished, d.KeepOutputs = 10, 5
	task := &Task{ID: 7, Properties: d, State: Succeeded, Dependents: 2, Rounds: Rounds{0: {Entered: map[State]Time{Succeeded: 1}}}}
	if m, ok := task.Settle(50, nil); ok {
		t.Error(m)
	}
	expect.Equal(t, task.NextDue(50), 50+Time(neededPause))
	expect.Result(task.Remove()).FailsWith(t, ErrNeeded)
	task.Dependents = 0
	if m, ok := task.Settle(50, nil); !ok || m.Verb != VerbRemove {
		t.Error(m)
	}
}

func TestCheckDependency(t *testing.T) {
	for _, c := range []struct {
		property string
		state    State
		outcome  string
		want     string
	}{
		{FieldAfter, None, "", "after: there is no task 5"},
		{FieldAfterAny, None, "", "after_any: there is no task 5"},
		{FieldAfter, Archived, "failed", "after: task 5: failed; retry it first"},
		{FieldAfter, Expired, "cancelled", "after: task 5: cancelled; retry it first"},
		{FieldAfterAny, Failed, "failed", ""},
		{FieldAfter, Open, "", ""},
		{FieldAfter, Succeeded, "succeeded", ""},
		{FieldAfter, Succeeded, "", ""}, // the original TDF writes no outcome
		{FieldAfter, Archived, "", "after: task 5: archived"},
	} {
		err := CheckDependency(c.property, 5, c.state, c.outcome)
		got := fmt.Sprint(err)
		if err == nil {
			expect.Equal(t, c.want, "", c.property, c.state)
		}
		if err != nil {
			expect.NotEqual(t, c.want, "", c.property, c.state)
			expect.True(t, strings.HasPrefix(got, c.want), c.property, c.state, err, "want", c.want)
		}
	}
}
