package dashboard_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
)

// open opens a number of tasks of an owner.
func (s *site) open(n int, owner string) {
	s.Helper()
	for i := range n {
		d := testspace.Define("p", "rsync:/p/run.sh", strconv.Itoa(i))
		d.Owner = owner
		expect.Result(s.manager.Open(s.Context(), d)).OK(s)
	}
}

func (s *site) count(state task.State) int64 {
	s.Helper()
	counts := expect.Result(s.manager.Counts(s.Context())).Value(s)
	return counts[state]
}

// A bulk change needs a confirmation that names the number of tasks, and changes nothing if there is another number by then.
func TestBulkChange(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(3, "")
	b := s.as(access.Operator)
	text := b.page("/ui/tasks/confirm?do=cancel&state=open&of=p", 200)
	expect.Contains(t, text, "Cancel 3 tasks")
	expect.Contains(t, text, `name="expect" value="3"`)
	expect.Contains(t, text, `value="of=p&amp;state=open"`)
	form := func(do, tasks, number string, more ...string) url.Values {
		f := url.Values{"do": {do}, "tasks": {tasks}, "expect": {number}}
		for i := 0; i < len(more); i += 2 {
			f.Add(more[i], more[i+1])
		}
		return f
	}
	for name, c := range map[string]struct {
		form   url.Values
		status int
	}{
		"another number":       {form("cancel", "state=open", "2"), 409},
		"no number":            {form("cancel", "state=open", ""), 409},
		"no tasks":             {form("cancel", "", "3"), 422},
		"only other fields":    {form("cancel", "cursor=1&limit=3", "3"), 422},
		"an unknown action":    {form("explode", "state=open", "3"), 422},
		"an invalid filter":    {form("cancel", "state=nonsense", "3"), 422},
		"a hostile filter":     {form("cancel", "%zz;&\x00", "3"), 422},
		"too many ids":         {form("cancel", "id=1-100001", "3"), 422},
		"an unknown property":  {form("change", "state=open", "3", "property", "id", "value", "7"), 422},
		"an invalid value":     {form("change", "state=open", "3", "property", "max_fails", "value", "-1"), 422},
		"a property, no value": {form("change", "state=open", "3", "property", "max_fails"), 422},
	} {
		got := b.post("/ui/tasks/do", c.form)
		expect.Equal(t, got.StatusCode, c.status, name, got.text)
	}
	expect.MustEqual(t, s.count(task.Open), 3, "open tasks after refused changes")
	got := b.post("/ui/tasks/do", form("change", "state=open", "3", "property", "priority", "value", "7", "property", "timeout", "value", "2h", "property", "", "value", ""))
	expect.Equal(t, got.StatusCode, 200)
	expect.Contains(t, got.text, "3 tasks changed.")
	one := testspace.Read(t, s.store, 2)
	expect.Equal(t, one.Priority, 7)
	expect.Equal(t, one.Timeout, 7200)
	expect.NoError(t, s.store.Conn.Redis.HSet(t.Context(), s.store.Keys.Task(2), "input_replaced", "1").Err())
	expect.Contains(t, b.page("/ui/tasks/2", 200), "the parameters in the meta are those of an earlier input")
	got = b.post("/ui/tasks/do", form("cancel", "id=1&id=2-3", "3"))
	expect.Equal(t, got.StatusCode, 200)
	expect.Equal(t, s.count(task.Expired), 3)
	got = b.post("/ui/tasks/do", form("requeue", "state=expired", "3"))
	expect.Contains(t, got.text, "0 tasks requeued. 3 tasks left as they are.")
	expect.Contains(t, got.text, "it is expired in round 0")
	expect.Contains(t, b.page("/ui/tasks/1", 200), `name="round" value="0"`)
	got = b.post("/ui/tasks/1/retry", url.Values{"round": {"0"}})
	expect.Equal(t, got.Header.Get("Location"), "/ui/tasks/1")
	expect.Equal(t, s.count(task.Open), 1)
	b.post("/ui/tasks/do", form("cancel", "id=1", "1"))
	for round, status := range map[string]int{"0": 409, "": 422, "-1": 422, "x": 422} {
		expect.Equal(t, b.post("/ui/tasks/1/retry", url.Values{"round": {round}}).StatusCode, status, "an old page, round", round)
	}
	expect.Equal(t, s.count(task.Open), 0)
	expect.Contains(t, testspace.Read(t, s.store, 1).Log, "token operator", "the log does not name the user")
}

// A submitter sees and changes only its own tasks, whatever the address asks for.
func TestTasksOfOthers(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(2, "submitter")
	s.open(2, "")
	b := s.as(access.Submitter)
	for _, path := range []string{
		"/ui/tasks", "/ui/tasks?owner=operator", "/ui/tasks?id=1-4", "/ui/tasks?of=none", "/ui/api/v1/tasks",
	} {
		text := b.page(path, 200)
		expect.NotContains(t, text, "4 tasks", path)
		expect.NotContains(t, text, "tasks/3", path)
		expect.NotContains(t, text, `"id":3`, path)
	}
	for _, path := range []string{"/ui/tasks/3", "/ui/api/v1/tasks/3", "/ui/tasks/0", "/ui/tasks/x", "/ui/tasks/99999999999999999999"} {
		b.page(path, 404)
	}
	b.page("/ui/api/v1/stats", 403)
	expect.Contains(t, b.page("/ui/tasks/confirm?do=cancel&id=1-4", 200), "Cancel 2 tasks")
	b.post("/ui/tasks/do", url.Values{"do": {"cancel"}, "tasks": {"id=1-4"}, "expect": {"2"}})
	expect.Equal(t, b.post("/ui/tasks/3/cancel", nil).StatusCode, 404)
	expect.Equal(t, s.count(task.Open), 2)
	expect.Equal(t, s.count(task.Expired), 2)
}

// The list has pages and columns, and its results can be downloaded. A session opens only what reads.
func TestListOfTasks(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(60, "")
	b := s.as(access.Viewer)
	text := b.page("/ui/tasks?column=id&column=input&state=open", 200)
	expect.Equal(t, strings.Count(text, `<tr id="task-`), 50)
	expect.NotContains(t, text, `<th scope="col">Program`)
	expect.Contains(t, text, `href="/ui/api/v1/results?spreadsheet=true&amp;states=open"`)
	expect.Contains(t, text, `<th scope="col">Input`)
	_, next, _ := strings.Cut(text, `href="/ui/tasks?`)
	for !strings.Contains(next[:strings.IndexByte(next, '"')], "cursor=") {
		_, next, _ = strings.Cut(next, `href="/ui/tasks?`)
	}
	text = b.page("/ui/tasks?"+strings.ReplaceAll(next[:strings.IndexByte(next, '"')], "&amp;", "&"), 200)
	expect.Equal(t, strings.Count(text, `<tr id="task-`), 10, text)
	for _, filter := range []string{"id=1-100000", "id=1-100000&do=retry"} { // a short address makes no long page
		expect.Compare(t, len(b.page("/ui/tasks?"+filter, 200)), "<", 100_000, filter)
	}
	text = b.page("/ui/tasks?param=a%3D1%2C2&param=b%3D3&input-has=x", 200)
	expect.Contains(t, text, `params=a%3D1%2C2&amp;params=b%3D3`)
	expect.Contains(t, text, `value="b=3"`)
	expect.Contains(t, text, "among 60 tasks that were read")
	got := b.get("/ui/api/v1/results?states=open")
	expect.Equal(t, got.StatusCode, 200)
	expect.True(t, strings.HasPrefix(got.Header.Get("Content-Type"), "text/csv"), got.StatusCode, got.Header)
	expect.Contains(t, got.Header.Get("Content-Disposition"), "results.csv")
	got = b.get("/ui/api/v1/results?states=open&as=jsonl")
	expect.Equal(t, got.StatusCode, 200)
	expect.True(t, strings.HasPrefix(got.text, "{"), got.StatusCode, got.Header, got.text)
	expect.Contains(t, got.Header.Get("Content-Disposition"), "results.jsonl")
	for _, path := range []string{"/ui/api/v1/tasks/1/cancel", "/ui/api/v1/tasks/actions"} {
		status := b.post(path, nil).StatusCode
		expect.True(t, status >= 400, path, status)
	}
}

// A user changes the queue of a task only to a queue of its token.
func TestQueuesOfASession(t *testing.T) {
	s := newSite(t, web.Options{})
	text := expect.Result(s.admin.AddToken(t.Context(), access.Token{Name: "gpu", Role: access.Submitter, Queues: []string{"gpu"}})).Value(t)
	s.open(1, "gpu")
	b := s.browser()
	b.post("/ui/login", url.Values{"token": {text}})
	b.page("/ui/tasks", 200)
	for queue, status := range map[string]int{"crawl": 403, "": 403, "gpu": 200} {
		got := b.post("/ui/tasks/do", url.Values{"do": {"change"}, "tasks": {"id=1"}, "expect": {"1"}, "property": {"queue"}, "value": {queue}})
		expect.Equal(t, got.StatusCode, status, "queue", queue, got.text)
	}
}
