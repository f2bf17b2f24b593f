package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// The pages of campaigns, tasks and failures show several namespaces as one, and a change reaches the tasks of each. The
// pages about one namespace link to those about the others.
func TestShards(t *testing.T) {
	s := newSite(t, web.Options{})
	cfg := testspace.Config(t, redistest.Shared(t))
	second := testspace.Manager(t, cfg)
	s.Handler = s.dashboard(web.Options{Shards: []*manager.Manager{second}})
	for i, m := range []*manager.Manager{s.manager, second} {
		for n := range 2 {
			d := testspace.Define("p", "rsync:/p/run.sh", fmt.Sprintf("input-%d-%d", i, n))
			d.Group, d.Meta = "grid", fmt.Sprintf(`{"n":%d}`, 10*i+n)
			expect.Result(m.Open(t.Context(), d)).OK(t)
		}
	}
	store := testspace.Connect(t, cfg)
	got := expect.Result(store.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 3600})).Value(t)
	testspace.End(t, store, got.Claims[0], rules.Result{Exit: "3", Error: "boom"})
	name := cfg.Namespace + "/1"
	address := "/ui/tasks/" + url.PathEscape(name)

	b := s.as(access.Operator)
	has := func(path string, texts ...string) string {
		t.Helper()
		page := b.page(path, http.StatusOK)
		for _, text := range texts {
			expect.Contains(t, page, text, path)
		}
		return page
	}
	has("/ui/campaigns", "grid")
	has("/ui/campaigns/grid", "1 of 4 tasks", "boom", "Page of task "+name)
	has("/ui/campaigns/grid/plot.svg", "<svg")
	has("/ui/tasks", "input-0-1", "input-1-1", ">"+name+"<")
	page := has("/ui/tasks?id="+url.QueryEscape(name), "input-1-0")
	expect.NotContains(t, page, "input-0-0")
	expect.NotContains(t, page, "input-1-1")
	has("/ui/failures", "boom", address)
	expect.NotContains(t, has(address, "input-1-0", "boom", "grid"), "/api/v1/tasks")
	has(address+"/explain", name)
	b.page("/ui/tasks/1", http.StatusNotFound)
	b.page("/ui/tasks/other%2F1", http.StatusNotFound)
	has("/ui/workers?namespace="+cfg.Namespace, "?namespace="+s.cfg.Namespace, `aria-current="true">`+cfg.Namespace)

	has("/ui/tasks/confirm?do=cancel&campaign=grid&state=open", "Cancel 3 tasks?")
	done := b.post("/ui/tasks/do", url.Values{"do": {"cancel"}, "tasks": {"campaign=grid&state=open"}, "expect": {"3"}})
	expect.Contains(t, done.text, "3 tasks cancelled")
	b.post(address+"/retry", url.Values{"round": {"0"}})
	expect.Equal(t, expect.Result(second.Get(t.Context(), 1)).Value(t).State, task.Open)
	b.post("/ui/limits/set", url.Values{"key": {"k"}, "at_most": {"3"}, "from": {"/ui/limits?namespace=" + cfg.Namespace}})
	expect.Len(t, expect.Result(second.Limits().All(t.Context())).Value(t), 1)
	expect.Len(t, expect.Result(s.manager.Limits().All(t.Context())).Value(t), 0)
}
