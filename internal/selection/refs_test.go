package selection

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// Count finds the same tasks as Refs, whether it reads them or not.
func TestCount(t *testing.T) {
	t.Parallel()
	m := testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	for i := range 9 {
		d := testspace.Define(fmt.Sprint("p", i%2), "rsync:/p/run.sh", "")
		d.Group = []string{"a", "b", ""}[i%3]
		expect.Result(m.Open(t.Context(), d)).OK(t)
	}
	refs := expect.Result(Refs(m.List(t.Context(), manager.Query{IDs: []int64{1, 2, 3}}))).Value(t)
	expect.Result(m.Do(t.Context(), manager.Action{Verb: rules.VerbCancel}, refs...)).OK(t)
	for _, q := range []manager.Query{
		{},
		{States: []task.State{task.Open}},
		{States: []task.State{task.Open, task.Open, task.Expired}},
		{Group: "a"},
		{Group: "a", States: []task.State{task.Expired}, Order: manager.OldestFirst},
		{Group: "none"},
		{States: []task.State{task.Running}},
		{Program: "p1"},
		{Group: "b", Program: "p*"},
		{IDs: []int64{3, 5}},
		{Outcomes: []string{task.Cancelled}},
		{Owner: "x"},
	} {
		read := q
		ForRefs(&read)
		refs := expect.Result(Refs(m.List(t.Context(), read))).Value(t)
		var want []int64
		for _, r := range refs[:min(len(refs), 2)] {
			want = append(want, r.ID)
		}
		n, ids, err := Count(t.Context(), m, q, 2)
		expect.NoError(t, err)
		expect.Equal(t, n, len(refs), q)
		expect.Equal(t, ids, want, q)
	}
}
