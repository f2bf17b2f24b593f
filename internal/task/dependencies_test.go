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
	one, err := ParseTask(9, h)
	if err != nil || fmt.Sprintln(one.After.Tasks, one.AfterAny.Tasks, one.AfterAny.Group) != "[3 7] [3] g\n" || one.Links != 6 || !one.Waits() || one.Place() != "priority=5" {
		t.Errorf("%+v, %v", one, err)
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
