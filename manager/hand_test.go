package manager_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

func TestByHand(t *testing.T) {
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ids := open(t, m, "ok", "ok", "ok")
	if err := m.Cancel(ctx, ids[2], ids[2]); err != nil {
		t.Fatal(err)
	}
	err := m.Reopen(ctx, ids[0], ids[2], 77)
	for _, want := range []string{"reopen task 1: it is open in round 0", "reopen task 77: there is no such task"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	if e := new(tdf.StateError); !errors.As(err, &e) {
		t.Errorf("%v holds no *StateError", err)
	}
	if again := tm.Tasks()[2]; again.State != tdf.Open || again.Round != 1 || again.Reopens != 1 || again.Outcome != "" {
		t.Errorf("the reopened task is %s in round %d, reopens %d, outcome %q", again.State, again.Round, again.Reopens, again.Outcome)
	}
	run(t, m, manager.Callbacks{})
	if err := m.Reopen(ctx, ids...); err != nil {
		t.Error(err)
	}
	if n := len(tm.In(tdf.Open)); n != 3 {
		t.Errorf("%d tasks are open, want 3", n)
	}
	if err := m.Cancel(ctx); err != nil {
		t.Errorf("cancelling nothing: %v", err)
	}
}

// Each act moves the tasks that it can be done to, and leaves the others as they are.
func TestActs(t *testing.T) {
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ids := open(t, m, "ok", "ok", "ok")
	act := func(a manager.Act, done int, refused string, ids ...int64) {
		t.Helper()
		var found []manager.Found
		for _, id := range ids {
			found = append(found, manager.Found{ID: id, Round: manager.AnyRound})
		}
		acted, err := m.Act(ctx, a, found...)
		if text := fmt.Sprint(acted.Refused); err != nil || acted.Done != done || text != "["+refused+"]" {
			t.Errorf("%s: done %d, refused %s, %v; want %d, [%s]", a.Verb, acted.Done, text, err, done, refused)
		}
	}
	change := manager.Act{Verb: tdf.VerbChange, Changes: tdf.Changes{Input: new("other")}}
	act(change, 2, "", ids[0], ids[1], ids[0])
	act(change, 0, "change task 1: it already has these values", ids[0])
	act(manager.Act{Verb: tdf.VerbChange, Changes: tdf.Changes{Input: new("'")}}, 0, "change task 1: input: a quote is not closed", ids[0])
	if got := tm.Tasks()[0]; got.Input != "other" || got.Revision != 1 || got.State != tdf.Open {
		t.Errorf("%+v", got)
	}
	act(manager.Act{Verb: tdf.VerbRemove}, 0, "remove task 1: it is open in round 0", ids[0])
	act(manager.Act{Verb: tdf.VerbRelease}, 0, "release task 1: it is open in round 0", ids[0])
	act(manager.Act{Verb: tdf.VerbCancel}, 3, "", ids...)
	act(manager.Act{Verb: tdf.VerbArchive}, 1, "archive task 9: there is no such task", ids[2], 9)
	act(manager.Act{Verb: tdf.VerbReopen, Changes: tdf.Changes{Program: new("q"), Source: new("rsync:/q/run.sh")}}, 2, "", ids[0], ids[2])
	if got := tm.Tasks()[2]; got.Program != "q" || got.Round != 1 || got.Input != "ok" {
		t.Errorf("%+v", got)
	}
	act(manager.Act{Verb: tdf.VerbRemove}, 1, "", ids[1])
	if n := len(tm.Tasks()); n != 2 {
		t.Errorf("%d tasks are left", n)
	}
	if _, err := m.Act(ctx, manager.Act{Verb: tdf.VerbClaim}, manager.Found{ID: 1}); err == nil {
		t.Error("a claim was made by hand")
	}
}

// A task whose time is over would expire at once.
func TestReopenNeedsTime(t *testing.T) {
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ids := open(t, m, "ok")
	now, past := tdf.At(tm.Now()), tdf.At(tm.Now())-1
	change := manager.Act{Verb: tdf.VerbChange, Changes: tdf.Changes{EndBefore: &now}}
	if acted, err := m.Act(ctx, change, manager.Found{ID: ids[0]}); err != nil || acted.Done != 1 {
		t.Fatal(acted, err)
	}
	if err := m.Cancel(ctx, ids...); err != nil {
		t.Fatal(err)
	}
	for _, end := range []*tdf.Time{nil, &past} {
		again := manager.Act{Verb: tdf.VerbReopen, Changes: tdf.Changes{EndBefore: end}}
		acted, err := m.Act(ctx, again, manager.Found{ID: ids[0]})
		if err != nil || acted.Done != 0 || len(acted.Refused) != 1 || !errors.Is(acted.Refused[0], manager.ErrPast) {
			t.Errorf("%+v, %v", acted, err)
		}
	}
	later := now.Add(1)
	acted, err := m.Act(ctx, manager.Act{Verb: tdf.VerbReopen, Changes: tdf.Changes{EndBefore: &later}}, manager.Found{ID: ids[0]})
	if got := tm.Tasks()[0]; err != nil || acted.Done != 1 || got.State != tdf.Open || got.EndBefore != later {
		t.Errorf("%+v, %v: %s until %v", acted, err, got.State, got.EndBefore)
	}
}

// What has become of a task since it was found is not undone by whoever found it before.
func TestActsOnWhatWasFound(t *testing.T) {
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ids := open(t, m, "ok", "ok")
	cancel, reopen := manager.Act{Verb: tdf.VerbCancel, From: []tdf.State{tdf.Running}}, manager.Act{Verb: tdf.VerbReopen}
	acted, err := m.Act(ctx, cancel, manager.Found{ID: ids[0]})
	if text := fmt.Sprint(acted.Refused); err != nil || acted.Done != 0 || text != "[cancel task 1: it is open in round 0]" {
		t.Errorf("%+v, %v", acted, err)
	}
	if err := m.Cancel(ctx, ids...); err != nil {
		t.Fatal(err)
	}
	found := manager.Found{ID: ids[0], Round: 0}
	if acted, err := m.Act(ctx, reopen, found, found); err != nil || acted.Done != 1 {
		t.Errorf("%+v, %v", acted, err)
	}
	if err := m.Cancel(ctx, ids[0]); err != nil { // somebody else's, in its next round
		t.Fatal(err)
	}
	acted, err = m.Act(ctx, reopen, found)
	if text := fmt.Sprint(acted.Refused); err != nil || acted.Done != 0 || text != "[reopen task 1: it is expired in round 1]" {
		t.Errorf("%+v, %v", acted, err)
	}
}

func TestLooking(t *testing.T) {
	tm, _ := newTester(t)
	m, ctx := tm.Manager, t.Context()
	ids := open(t, m, "a", "b", "c")
	if _, err := m.Task(ctx, 9); !errors.Is(err, tdf.ErrNoTask) {
		t.Errorf("task 9: %v", err)
	}
	if got, err := m.Task(ctx, ids[1]); err != nil || got.Input != "b" {
		t.Errorf("task 2: %v, %v", got, err)
	}
	if got, err := m.List(ctx, tdf.Open, "", 1, 1); err != nil || len(got) != 1 || got[0] != ids[1] {
		t.Errorf("page: %v, %v", got, err)
	}
	for _, page := range [][2]int64{{-1, 5}, {0, 0}} {
		if _, err := m.List(ctx, tdf.Open, "", page[0], page[1]); err == nil {
			t.Errorf("offset %d, most %d: no error", page[0], page[1])
		}
	}
	if counts, err := m.Counts(ctx); err != nil || counts[tdf.Open] != 3 || counts.Total() != 3 {
		t.Errorf("counts: %v, %v", counts, err)
	}
	if _, err := m.Counts(ctx, "a", ""); err == nil {
		t.Error(`a group named "" was counted`)
	}
}
