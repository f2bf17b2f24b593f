package manager_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/manager"
)

func ofGroup(group, input string) manager.Definition {
	d := define("p", source, input)
	d.Group = group
	return d
}

func checkStatus(t *testing.T, m *manager.Manager, closed, complete, decided bool) {
	t.Helper()
	s, err := m.GroupStatus(t.Context(), "g")
	if err != nil || s.Closed != closed || s.Complete() != complete || s.Decided != decided || s.Since.IsZero() == closed {
		t.Errorf("%+v, %v, want closed %t, complete %t, decided %t", s, err, closed, complete, decided)
	}
}

// A group is open, closed, complete and decided, one after the other.
func TestLifeOfAGroup(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	ctx := t.Context()
	checkStatus(t, m, false, false, false)
	expect.FailsWith(t, m.CloseGroup(ctx, "g"), tdf.ErrGroupEmpty)
	opened := expect.Result(m.Open(ctx, ofGroup("g", "a"))).Value(t)
	checkStatus(t, m, false, false, false)
	must(t, m.CloseGroup(ctx, "g"))
	checkStatus(t, m, true, false, false)
	if _, err := m.Open(ctx, define("p", source, "x"), ofGroup("g", "b")); !errors.Is(err, tdf.ErrGroupClosed) || len(tm.Tasks()) != 1 {
		t.Error(err)
	}
	must(t, m.ExtendGroup(ctx, "g"))
	checkStatus(t, m, false, false, false)
	must(t, m.CloseGroup(ctx, "g"))
	expect.Result(m.Cancel(ctx, opened[0].Ref())).OK(t)
	checkStatus(t, m, true, true, false)
	x := m.Transaction()
	x.Decide("g")
	expect.Result(x.Commit(ctx)).OK(t)
	checkStatus(t, m, true, true, true)
	expect.FailsWith(t, m.ExtendGroup(ctx, "g"), tdf.ErrGroupDecided)
	expect.Result(m.Retry(ctx, manager.Changes{}, opened[0].Ref())).OK(t)
	checkStatus(t, m, true, false, true)
	expect.Result(m.GroupStatus(ctx, "")).Fails(t, "", "the status of a group without a name")
}

func must(t *testing.T, err error) {
	t.Helper()
	expect.NoError(t, err)
}

// A callback cannot open follow-ups in a closed group. Its task stays, until the group is extended.
func TestFollowUpIntoAClosedGroup(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	m := tm.Manager
	expect.Result(m.Open(t.Context(), ofGroup("g", "a"))).OK(t)
	must(t, m.CloseGroup(t.Context(), "g"))
	calls := 0
	run(t, m, manager.Callbacks{AllGroups: true, Succeeded: func(ctx context.Context, task *manager.Finished) error {
		calls++
		if task.Input == "a" {
			task.Open(ofGroup("g", "b"))
		}
		if calls == 2 {
			return m.ExtendGroup(ctx, "g")
		}
		return nil
	}})
	expect.Equal(t, calls, 3)
	expect.Len(t, tm.In(tdf.Archived), 2, calls)
	expect.Equal(t, log.Count(`step of the callback: group \"g\": it is closed, so no task can be opened in it; extend it first`), 1, log.String())
}
