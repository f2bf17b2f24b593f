package manager_test

import (
	"errors"
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
	for _, want := range []string{"reopen task 1: it is open in round 0 by now", "reopen task 77: there is no such task"} {
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
