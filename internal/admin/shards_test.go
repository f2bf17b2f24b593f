package admin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// newShards returns n namespaces as one, with the manager of each.
func newShards(t *testing.T, n int) (*admin.Shards, []*manager.Manager) {
	t.Helper()
	var all []*manager.Manager
	for range n {
		all = append(all, newManager(t, redisConfig(t, redistest.Shared(t))))
	}
	return admin.NewShards(all...), all
}

func openIn(t *testing.T, m *manager.Manager, group string, n int) {
	t.Helper()
	for i := range n {
		d := define("p", "rsync:/p/run.sh", fmt.Sprint(i))
		d.Group = group
		expect.Result(m.Open(t.Context(), d)).OK(t)
	}
}

// The pages of several namespaces have each task once, whatever the size of a page, and each task names its namespace.
func TestShardsPages(t *testing.T) {
	t.Parallel()
	s, all := newShards(t, 3)
	openIn(t, all[0], "a", 3)
	openIn(t, all[2], "a", 2)
	openIn(t, all[2], "b", 1)
	names := s.Namespaces()
	want := []string{names[0] + "/1", names[0] + "/2", names[0] + "/3", names[2] + "/1", names[2] + "/2"}
	for limit := 1; limit <= 6; limit++ {
		var got []string
		for cursor, more := "", true; more; more = cursor != "" {
			page := expect.Result(s.Page(t.Context(), s.All(manager.Query{Group: "a", Order: manager.OldestFirst}), cursor, limit)).Value(t)
			expect.Compare(t, len(page.Tasks), "<=", limit)
			for _, one := range page.Tasks {
				got = append(got, one.Name())
			}
			cursor = page.Next
		}
		expect.Equal(t, got, want, limit)
	}
	var listed []string
	for one, err := range s.List(t.Context(), s.All(manager.Query{Group: "a", Order: manager.OldestFirst})) {
		expect.NoError(t, err)
		listed = append(listed, one.Name())
	}
	expect.Equal(t, listed, want)
	for _, cursor := range []string{"x", "3.", "-1.", "1", "."} {
		_, err := s.Page(t.Context(), s.All(manager.Query{}), cursor, 1)
		expect.Equal(t, task.CodeOf(err), task.CodeInvalid, cursor)
	}
}

// The list of groups has each group once, in the order of the names, whatever the size of a page. A group is closed if
// it is closed wherever it has tasks.
func TestShardsGroups(t *testing.T) {
	t.Parallel()
	s, all := newShards(t, 2)
	for i, groups := range [][]string{{"a", "c", "d"}, {"b", "c", "e", "f"}} {
		for _, g := range groups {
			openIn(t, all[i], g, 1)
		}
	}
	for most := 1; most <= 7; most++ {
		var got []string
		for cursor, more := "", true; more; more = cursor != "" {
			page := expect.Result(s.GroupPage(t.Context(), "", cursor, most)).Value(t)
			expect.Compare(t, len(page.Groups), "<=", most)
			for _, g := range page.Groups {
				got = append(got, fmt.Sprint(g.Name, g.Counts.Total()))
			}
			cursor = page.Next
		}
		expect.Equal(t, got, []string{"a1", "b1", "c2", "d1", "e1", "f1"}, most)
	}
	expect.NoError(t, all[0].CloseGroup(t.Context(), "c"))
	expect.True(t, !expect.Result(s.GroupStatus(t.Context(), "c")).Value(t).Closed)
	expect.NoError(t, all[1].CloseGroup(t.Context(), "c"))
	status := expect.Result(s.GroupStatus(t.Context(), "c")).Value(t)
	expect.True(t, status.Closed)
	expect.Equal(t, status.Counts[task.Open], 2)
	expect.NoError(t, all[0].CloseGroup(t.Context(), "a"))
	expect.True(t, expect.Result(s.GroupStatus(t.Context(), "a")).Value(t).Closed, "the other namespace has no task of it")
}

// A change reaches the tasks of each namespace, and only those that were named.
func TestShardsDo(t *testing.T) {
	t.Parallel()
	s, all := newShards(t, 2)
	openIn(t, all[0], "g", 2)
	openIn(t, all[1], "g", 2)
	names := s.Namespaces()
	done := expect.Result(s.Do(t.Context(), manager.Action{Verb: rules.VerbCancel},
		manager.Ref{Namespace: names[0], ID: 1}, manager.Ref{Namespace: names[1], ID: 2}, manager.Ref{Namespace: names[1], ID: 9})).Value(t)
	expect.Equal(t, done.Done, 2)
	expect.Len(t, done.Skipped, 1)
	expect.Contains(t, done.Skipped[0].Error(), "namespace "+names[1]+": ")
	expect.Equal(t, fmt.Sprint(expect.Result(s.Counts(t.Context(), "g")).Value(t)), "open 2 expired 2")
	expect.Equal(t, expect.Result(s.Outcomes(t.Context(), "g")).Value(t)[task.Cancelled], 2)
	for i, m := range all {
		expect.Equal(t, expect.Result(m.Get(t.Context(), int64(1+i))).Value(t).State, task.Expired)
	}
}

// A watch adds up the tasks, workers and slots of all namespaces.
func TestShardsWatch(t *testing.T) {
	t.Parallel()
	s, all := newShards(t, 2)
	openIn(t, all[0], "g", 2)
	openIn(t, all[1], "g", 3)
	for i, m := range all {
		store := managing.Of(m).Store
		alive(t, store, "both", "working", 4)
		alive(t, store, fmt.Sprint("only", i), "working", 1)
		expect.NoError(t, m.CloseGroup(t.Context(), "g"))
	}
	status := expect.Result(s.Watch("g").Look(t.Context())).Value(t)
	expect.Equal(t, status.Counts.Total(), 5)
	expect.Equal(t, status.Workers, 4)
	expect.Equal(t, status.Slots, 10)
	expect.True(t, status.Closed)
	for _, name := range s.Namespaces() {
		expect.True(t, slices.ContainsFunc(status.Obstacles, func(f admin.Fact) bool {
			return strings.HasPrefix(f.Text, "namespace "+name+": no server was ever seen")
		}), status.Obstacles)
	}
}
