package admin

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// The dependents of a task are those that still wait for it or for its group, of the owner that is asked for.
func TestDependents(t *testing.T) {
	a, m := onEmbedded(t)
	open := func(owner string, after, anyway *task.Dependencies) *manager.Task {
		t.Helper()
		d := testspace.Define("p", "rsync:/p/run.sh", "")
		d.Owner, d.After, d.AfterAny = owner, after, anyway
		if after == nil && anyway == nil {
			d.Group = "g"
		}
		return expect.Result(m.Open(t.Context(), d)).Value(t)[0]
	}
	first := open("", nil, nil)
	one := &task.Dependencies{Tasks: []int64{first.ID}}
	open("", one, nil)
	open("ada", nil, one)
	open("", one, nil)
	open("", &task.Dependencies{Group: "g"}, nil)
	expect.Result(m.Cancel(t.Context(), manager.ByIDs(4)...)).OK(t)
	expect.Result(dependencies.Of(a.redis()).LinkWaiting(t.Context())).OK(t)
	mustBe := func(owner string, most int, want string) {
		t.Helper()
		found, err := a.Dependents(t.Context(), first, owner, most)
		got := ""
		for _, d := range found.Tasks {
			got += fmt.Sprintf("%d %s %v %v, ", d.ID, d.State, d.Any, d.Group)
		}
		expect.Equal(t, fmt.Sprint(got, len(found.IDs), found.Total, err), want, owner)
	}
	mustBe("", 10, "2 open false false, 3 open true false, 5 open false true, 3 3 <nil>")
	mustBe("", 1, "2 open false false, 3 3 <nil>")
	mustBe("ada", 10, "3 open true false, 1 1 <nil>")
	mustBe("ada", 0, "1 1 <nil>")
	mustBe("eve", 10, "0 0 <nil>")
	expect.Result(m.Cancel(t.Context(), manager.ByIDs(3)...)).OK(t)
	mustBe("", 10, "2 open false false, 5 open false true, 3 3 <nil>")
	unknown := &manager.Task{ID: 99}
	found := expect.Result(a.Dependents(t.Context(), unknown, "", 10)).Value(t)
	expect.Equal(t, found.Total, 0)
	expect.Len(t, found.Tasks, 0)
}
