package dashboard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// The page of a task shows what it waits for and what waits for it, with their states, at most 20 on each side, and leads to the others. A submitter sees the
// states of its own tasks.
func TestGraph(t *testing.T) {
	s := newSite(t, web.Options{})
	open := func(owner string, after, anyway *task.Dependencies) int64 {
		t.Helper()
		d := testspace.Define("p", "rsync:/p/run.sh", "")
		d.Owner, d.After, d.AfterAny = owner, after, anyway
		if after == nil && anyway == nil {
			d.Group = "submitter/<b>g"
		}
		return expect.Result(s.manager.Open(t.Context(), d)).Value(t)[0].ID
	}
	var ids []int64
	for range 30 {
		ids = append(ids, open("submitter", nil, nil))
	}
	first := &task.Dependencies{Tasks: ids[:1]}
	many := open("submitter", nil, &task.Dependencies{Tasks: ids})
	byGroup := open("", &task.Dependencies{Group: "submitter/<b>g"}, nil)
	expect.Result(s.manager.Cancel(t.Context(), manager.ByIDs(ids[1])...)).OK(t)
	expect.Result(dependencies.Of(s.store).LinkWaiting(t.Context())).OK(t)
	views := 0
	graph := func(role access.Role, id int64) string {
		t.Helper()
		views++ // a view of the same address may be a second old
		_, part, found := strings.Cut(s.as(role).page(fmt.Sprintf("/ui/tasks/%d?view=%d", id, views), 200), `<section id="graph"`)
		part, _, _ = strings.Cut(part, "</section>")
		expect.True(t, found, "the page has no graph")
		return part
	}
	text := graph(access.Submitter, many)
	expect.Contains(t, text, `<li class="node cancelled any"><a href="/ui/tasks/2">Task 2</a> expired (cancelled) <span class="faint">any outcome</span></li>`)
	expect.Contains(t, text, `<a href="/ui/tasks?id=1-30">and 10 more</a>`)
	expect.Equal(t, strings.Count(text, "<li "), 20, "dependencies")
	text = graph(access.Operator, byGroup)
	expect.Contains(t, text, `<li class="node running"><a href="/ui/campaigns/submitter%2F%3Cb%3Eg">Campaign submitter/&lt;b&gt;g</a> waiting</li>`)
	text = graph(access.Operator, 1)
	expect.Contains(t, text, fmt.Sprintf(`<li class="node open any"><a href="/ui/tasks/%d">Task %[1]d</a> open (waits for tasks) <span class="faint">any outcome</span></li>`, many))
	expect.Contains(t, text, fmt.Sprintf(`<a href="/ui/tasks/%d">Task %[1]d</a> open (waits for tasks) <span class="faint">by its campaign</span></li>`, byGroup))
	text = graph(access.Submitter, 1)
	expect.NotContains(t, text, fmt.Sprint("Task ", byGroup))
	expect.Contains(t, text, fmt.Sprint("Task ", many))
	for range 25 {
		open("", first, nil)
	}
	expect.Result(dependencies.Of(s.store).LinkWaiting(t.Context())).OK(t)
	text = graph(access.Operator, 1)
	expect.Contains(t, text, `<a href="/ui/tasks?id=31-57">and 7 more</a>`)
	expect.Equal(t, strings.Count(text, "<li "), 20, "dependents")
	text = graph(access.Submitter, 1)
	expect.Equal(t, strings.Count(text, "<li "), 1, "dependents of the submitter")
	expect.NotContains(t, text, "more</a>")
	claims := expect.Result(s.store.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 100, Lease: 60})).Value(t)
	var last *task.Task
	for _, c := range claims.Claims {
		m := expect.Result(rules.Execute(c.Task, c.ID, rules.Result{Exit: "0"})).Value(t)
		u := redisstate.Unit{Moves: []rules.Move{m}, Open: slices.Repeat([]task.Properties{task.Defaults("p", "rsync:/p/run.sh", "<i>")}, 23), ByRound: true}
		expect.NoError(t, expect.Result(s.store.Apply(t.Context(), "w", u)).Value(t)[0].Err)
		last = c.Task
	}
	text = graph(access.Operator, last.ID)
	_, text, _ = strings.Cut(text, "Opened by it")
	expect.Equal(t, strings.Count(text, "<li "), 20, "follow-ups")
	expect.Contains(t, text, "and 3 more</a>")
	alone := expect.Result(s.manager.Open(t.Context(), testspace.Define("p", "rsync:/p/run.sh", ""))).Value(t)[0]
	plain := s.as(access.Operator).page(fmt.Sprintf("/ui/tasks/%d", alone.ID), 200)
	expect.True(t, !strings.Contains(plain, `class="graph"`), plain)
}
