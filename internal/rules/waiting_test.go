package rules

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// The server decides about a waiting task by what it has looked up.
func TestSettleWaiting(t *testing.T) {
	one := func(change func(*task.Task)) *task.Task {
		t := &task.Task{ID: 7, Properties: waitingProperties(), State: task.Open, PlacedIn: task.WaitingPlace, Links: 3, Rounds: task.Rounds{0: {Linked: 3}}}
		t.EndBefore = 100
		change(t)
		return t
	}
	for _, c := range []struct {
		what   string
		change func(*task.Task)
		want   string // the verb and the next time
	}{
		{"nothing is looked up", func(t *task.Task) { t.Current().Linked = 0 }, " 100 true"},
		{"two of three are looked up", func(t *task.Task) { t.Current().Linked = 2 }, " 100 true"},
		{"one has not ended", func(t *task.Task) { t.Current().Waits = 1 }, " 100 false"},
		{"all have ended", func(*task.Task) {}, "unblock 0 false"},
		{"one is not met", func(t *task.Task) { t.Current().Unmet, t.Current().Waits = "task 3: failed", 1 }, "reject 0 false"},
		{"it expires", func(t *task.Task) { t.EndBefore, t.Current().Waits = 50, 1 }, "expire 50 false"},
		{"another program has removed its dependencies", func(t *task.Task) { t.Links = 0 }, "unblock 0 false"},
	} {
		x := one(c.change)
		m, ok := Settle(x, 50, nil)
		expect.Equal(t, fmt.Sprint(m.Verb, " ", NextDue(x, 50), " ", x.MustLink()), c.want, c.what)
		expect.Equal(t, ok, m.Verb != "", c.what, c.want)
	}
	m, _ := Settle(one(func(t *task.Task) { t.Queue = "q" }), 50, nil)
	expect.True(t, slices.Contains(m.Set, task.Field{Name: task.FieldPlace, Value: "queue=q"}), m.Set)
	if m, _ := Settle(one(func(*task.Task) {}), 50, nil); !slices.Contains(m.Clear, task.FieldPlace) {
		t.Error(m.Clear)
	}
}

// A retry begins where a new task begins, and a change leaves a task where it waits.
func TestPlacesOfWaitingTasks(t *testing.T) {
	failed := &task.Task{ID: 7, Properties: waitingProperties(), State: task.Failed, Links: 1, Rounds: task.Rounds{0: {}}}
	m, err := Reopen(failed)
	expect.NoError(t, err)
	expect.True(t, slices.Contains(m.Set, task.Field{Name: task.FieldPlace, Value: task.WaitingPlace}), m, err)
	m, err = ReopenWith(failed, task.Changes{Queue: new("q")})
	expect.NoError(t, err)
	expect.True(t, slices.Contains(m.Set, task.Field{Name: task.FieldPlace, Value: task.WaitingPlace}), m, err)
	cancelled := &task.Task{ID: 7, Properties: waitingProperties(), State: task.Expired, PlacedIn: "limit=db", Rounds: task.Rounds{0: {}}}
	if m, err := Reopen(cancelled); err != nil || !slices.Contains(m.Clear, task.FieldPlace) {
		t.Error(m, err)
	}
	open := &task.Task{ID: 7, Properties: waitingProperties(), State: task.Open, PlacedIn: task.WaitingPlace, Links: 1, Rounds: task.Rounds{0: {}}}
	m, err = Change(open, task.Changes{Queue: new("q"), EndBefore: new(task.Time(100).Std())})
	expect.NoError(t, err)
	expect.True(t, slices.Contains(m.Set, task.Field{Name: task.FieldPlace, Value: task.WaitingPlace}), m, err)
}

// Unfinished dependents keep a task, whatever its retention period is.
func TestDependentsKeepATask(t *testing.T) {
	d := waitingProperties()
	d.KeepFinished, d.KeepOutputs = 10, 5
	one := &task.Task{ID: 7, Properties: d, State: task.Succeeded, Dependents: 2, Rounds: task.Rounds{0: {Entered: map[task.State]task.Time{task.Succeeded: 1}}}}
	if m, ok := Settle(one, 50, nil); ok {
		t.Error(m)
	}
	expect.Equal(t, NextDue(one, 50), 50+task.Time(neededPause))
	expect.Result(Remove(one)).FailsWith(t, ErrNeeded)
	one.Dependents = 0
	if m, ok := Settle(one, 50, nil); !ok || m.Verb != VerbRemove {
		t.Error(m)
	}
}

func waitingProperties() task.Properties {
	d := task.Defaults("p", "rsync:/p/run.sh", "1")
	d.Group = "own"
	return d
}
