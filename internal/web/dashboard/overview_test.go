package dashboard_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/manager"
)

// The overview shows the tasks that ended in the last hour and day, as charts and as tables.
func TestHistoryOfOverview(t *testing.T) {
	s := newSite(t, web.Options{})
	ctx, cli, ns := t.Context(), testspace.Client(t, s.cfg), s.cfg.Namespace
	expect.Contains(t, s.as(access.Viewer).page("/ui", http.StatusOK), "No counts yet", "before the first counts")
	now := expect.Result(s.store.Now(ctx)).Value(t)
	expect.NoError(t, s.store.Counters.KeepHistory(ctx, now.Add(-7200)))
	expect.NoError(t, s.store.Counters.KeepHistory(ctx, now.Add(-600)))
	expect.NoError(t, cli.ZAdd(ctx, ns+":activity", redis.Z{Score: 1, Member: "default"}).Err())
	expect.NoError(t, cli.HSet(ctx, ns+":activity:default", "made:succeed:succeeded", 1234, "made:lose:failed", 5, "run:5", 100).Err())
	expect.NoError(t, s.store.Counters.KeepHistory(ctx, now.Add(-540)))
	s.Handler = s.dashboard(web.Options{})
	got := s.as(access.Viewer).get("/ui")
	checkPage(t, "/ui", got)
	for _, want := range []string{
		`<td class="n">1,234</td><td class="n">5</td><td class="whole">3.00s, 4.60s, 4.96s</td><td class="whole">–</td>`, "Last hour: 1,234 succeeded and 5 failed tasks, at most 1,239 a minute",
		"no counts", "Numbers of the day", `class="succeeded" d="M`,
	} {
		expect.Contains(t, got.text, want)
	}
}

// The overview and the page of the queues show the busiest of many queues, and say how many others there are.
func TestManyQueues(t *testing.T) {
	s := newSite(t, web.Options{})
	var all []manager.Definition
	for i := range 503 {
		d := testspace.Define("p", "rsync:/p/run.sh", "")
		d.Queue = fmt.Sprintf("q%d", 1000+i)
		all = append(all, d)
	}
	all = append(all, all[502], all[502])
	expect.Result(s.manager.Open(t.Context(), all...)).OK(t)
	for address, want := range map[string]struct{ shown, others int }{"/ui": {20, 483}, "/ui/queues": {500, 3}} {
		text := s.as(access.Operator).page(address, 200)
		expect.Equal(t, len(regexp.MustCompile(`>q1\d\d\d<`).FindAllString(text, -1)), want.shown, address)
		expect.Contains(t, text, fmt.Sprint(want.others, " other queues"), address)
		expect.Contains(t, text, ">q1502<", address, "the busiest one")
	}
}

// The page that explains a task says in its title whether the task has still to run.
func TestTitleOfAnExplanation(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(1, "")
	b := s.as(access.Operator)
	expect.Contains(t, b.page("/ui/tasks/1/explain", 200), "<title>Why task 1 does not run or finish")
	p := s.start()
	testspace.End(t, s.store, p.Claim, rules.Result{Exit: "0"})
	s.Handler = s.dashboard(web.Options{})
	text := b.page("/ui/tasks/1/explain", 200)
	expect.Contains(t, text, "<title>Task 1, explained")
	expect.Contains(t, text, ">1</a>, explained</h1>")
}
