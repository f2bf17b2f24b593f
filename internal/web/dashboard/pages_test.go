package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/notify/notice"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/notices"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// pages lists the pages, with the roles that may see them, and actions the forms with the roles that may send them. Who may do what is written twice: in the
// tables of the dashboard, and here.
var (
	pages = map[string]string{
		"/ui": "viewer submitter operator", "/ui/workers": "viewer operator",
		"/ui/tasks": "viewer submitter operator", "/ui/tasks?state=open&state=nonsense&id=x": "viewer submitter operator",
		"/ui/tasks?column=meta&column=input&column=queue&column=owner&limit=500&order=oldest": "viewer submitter operator", "/ui/tasks/confirm?do=cancel&state=open": "submitter operator",
		"/ui/tasks/confirm?do=retry&id=1": "submitter operator", "/ui/tasks/2?round=0": "viewer operator", "/ui/tasks/2/explain": "viewer operator", "/ui/tasks/3": "viewer operator", "/ui/tasks/4": "viewer operator",
		"/ui/queues": "viewer operator", "/ui/limits": "viewer operator", "/ui/programs": "viewer operator", "/ui/failures": "viewer operator", "/ui/failures?exit=x": "viewer operator", "/ui/doctor": "viewer operator", "/ui/notices": "viewer operator",
		"/ui/campaigns": "viewer submitter operator", "/ui/campaigns/%3Cb%3Eg": "viewer operator", "/ui/new-campaign": "submitter operator",
	}
	actions = map[string]string{
		"/ui/workers/w/drain": "operator", "/ui/workers/w/resume": "operator",
		"/ui/tasks/do": "submitter operator", "/ui/tasks/99/cancel": "submitter operator", "/ui/queues/pause": "operator", "/ui/queues/resume": "operator",
		"/ui/limits/set": "operator", "/ui/limits/k/remove": "operator", "/ui/programs/x/pin": "operator", "/ui/programs/x/nonsense": "operator",
		"/ui/new-campaign": "submitter operator",
	}
)

var humans = []access.Role{access.Viewer, access.Submitter, access.Operator}

// hostile is a text that a program or a user could have written.
const hostile = "<script>alert(1)</script>\"'&\x1b[31mred\x1b[0m\u202eRTL"

// fill opens tasks with hostile texts, so that pages have something to show.
func (s *site) fill() {
	s.Helper()
	d := testspace.Define("p<i>", "rsync:/p/run.sh", "<script>alert(1)</script>\u202e")
	d.Meta = hostile
	d.Group = "<b>g"
	expect.Result(s.manager.Open(s.Context(), d)).OK(s)
	testspace.PutTasks(s, s.store, map[int64]task.Hash{
		2: {
			"id": "2", "state": "failed", "round": "1", "program": "p<i>", "source": "rsync:/p/run.sh", "input": "<b>g", "meta": hostile, "group": "<b>g", "owner": "operator", "log": hostile + "\n",
			"0:open": "1800000000", "0:worker": hostile, "0:claim": "c", "0:started": "1800000010", "0:executed": "1800000020", "0:failure": "1800000020", "0:exit": hostile, "0:error": hostile, "0:output": hostile,
			"1:open": "1800000030", "1:worker": "w", "1:claim": "d", "1:started": "1800000040", "1:executed": "1800000050", "1:failed": "1800000060", "1:failure": "1800000050", "1:exit": "3", "1:error": hostile,
			"1:result": `"</pre><script>"`,
		},
		3: {
			"id": "3", "state": "running", "round": "0", "program": "p<i>", "source": "rsync:/p/run.sh", "group": "<b>g", "0:open": "1800000000", "0:running": "1800000010", "0:worker": "w", "0:claim": "e", "0:tail": hostile,
			"0:progress": hostile, "lease_until": "4000000000",
		},
	})
	s.addWorkers("<b>g", "w")
	s.addNotices(
		notice.Notice{Kind: notice.CampaignEnded, At: time.Unix(1_800_000_000, 0), Text: hostile, Campaign: "<b>g", Tries: 1, Delivered: map[string]time.Time{"webhook": time.Unix(1_800_000_001, 0)}}.Stored(),
		notice.Notice{Kind: notice.WorkerLost, Text: strings.Repeat("<b>g", 500), Campaign: strings.Repeat("<b>g", 400), Tries: -1 << 60, Error: hostile}.Stored(),
		`{"delivered":{`+strings.Repeat(`"<b>g`, 3000), "<script>", strings.Repeat(" ", 1<<20), `{"delivered":{"<b>g":"2030-01-31T12:00:06Z"},"tries":1}`,
	)
	waiting := testspace.Define("p", "rsync:/p/run.sh", "")
	waiting.After, waiting.AfterAny = &task.Dependencies{Group: "<b>g"}, &task.Dependencies{Tasks: []int64{2, 3}}
	expect.Result(s.manager.Open(s.Context(), waiting)).OK(s)
	expect.Result(dependencies.Of(s.store).LinkWaiting(s.Context())).OK(s)
}

// addWorkers registers workers with bars of every outcome.
func (s *site) addWorkers(names ...string) {
	s.Helper()
	ctx := s.Context()
	for _, name := range names {
		w := presence.WorkerInfo{Name: name, Boot: name, Lease: 3600, State: "working", Slots: 3, Runs: []int64{3}}
		expect.Result(s.store.Presence.WorkerHeartbeat(ctx, w)).OK(s)
	}
}

// addNotices stores notices, or texts of other programs in the place of notices.
func (s *site) addNotices(texts ...string) {
	s.Helper()
	var all []notices.Sighting
	for i, text := range texts {
		all = append(all, notices.Sighting{Mark: fmt.Sprint("test ", i), After: "1", Notice: text})
	}
	expect.MustEqual(s, expect.Result(s.store.Notices.See(s.Context(), all...)).Value(s), len(texts))
}

// The page of the notices shows the newest ones, how their delivery has ended, and which cannot be read. It stays small.
func TestNoticesPage(t *testing.T) {
	s := newSite(t, web.Options{})
	expect.Contains(t, s.as(access.Operator).page("/ui/notices", 200), "No notices.")
	s.fill()
	text := s.as(access.Viewer).page("/ui/notices", 200)
	for _, part := range []string{"notice 5 cannot be read", "notice 3 cannot be read", `href="/ui/campaigns/%3Cb%3Eg">campaign`, "tries again: &lt;script&gt;", "<td>webhook</td>", "&lt;b&gt;g</td>"} {
		expect.Contains(t, text, part)
	}
	var many []string
	for i := range notices.Max {
		many = append(many, notice.Notice{Text: fmt.Sprint("notice number ", i, strings.Repeat("x", 1000)), Error: strings.Repeat("y", 500), Tries: 30, GivenUp: true}.Stored())
	}
	s = serialSite(t, web.Options{})
	s.addNotices(many...)
	got := s.as(access.Viewer).get("/ui/notices")
	checkPage(t, "/ui/notices", got)
	expect.Contains(t, got.text, "notice number 999x")
	expect.True(t, strings.Count(got.text, "given up after 30 tries") == 100, "notices on the page:", strings.Count(got.text, "given up"))
}

// Each role sees only its pages. No page loads anything from elsewhere, has a script or a style of its own, or shows the texts of programs as HTML.
func TestPages(t *testing.T) {
	s := newSite(t, web.Options{})
	s.fill()
	for _, role := range humans {
		b := s.as(role)
		for path, roles := range pages {
			got := b.get(path)
			refused := got.StatusCode == http.StatusForbidden || got.StatusCode == http.StatusNotFound // the tasks of others do not exist
			may := strings.Contains(roles, string(role))
			if may {
				expect.Equal(t, got.StatusCode, http.StatusOK, path, "as", role)
			}
			if !may {
				expect.True(t, refused, path, "as", role, got.StatusCode, got.text)
			}
			checkPage(t, path, got)
			for _, link := range strings.Split(got.text, `href="`)[1:] {
				link, _, _ = strings.Cut(link, `"`)
				may, known := pages[link]
				if known {
					expect.Contains(t, may, string(role), path, "shows", role, "a link to", link)
				}
			}
			for form, may := range actions {
				if strings.Contains(got.text, `action="`+form+`"`) {
					expect.Contains(t, may, string(role), path, "shows", role, "the button for", form)
				}
			}
		}
		for form, roles := range actions {
			got := b.post(form, nil)
			expect.Equal(t, got.StatusCode != http.StatusForbidden, strings.Contains(roles, string(role)), form, "as", role, got.StatusCode)
		}
	}
	for path := range pages {
		s.browser().page(path, http.StatusSeeOther)
	}
	for form := range actions {
		expect.Equal(t, s.browser().post(form, url.Values{}).StatusCode, http.StatusUnauthorized, form, "without a session")
	}
}

func checkPage(t *testing.T, path string, got answer) {
	t.Helper()
	policy := got.Header.Get("Content-Security-Policy")
	expect.NotContains(t, policy, "unsafe", path)
	expect.Contains(t, policy, "default-src 'none'", path)
	expect.Contains(t, policy, "frame-ancestors 'none'", path)
	expect.Equal(t, got.Header.Get("X-Content-Type-Options"), "nosniff", path)
	expect.Equal(t, got.Header.Get("Referrer-Policy"), "same-origin", path)
	for _, bad := range []string{"<script>", " style=", "<style", " onclick", "src=\"http", "href=\"http", "javascript:", "\x1b", "\u202e", "\x00", "<b>g", "<i>", "ZgotmplZ"} {
		expect.True(t, !strings.Contains(got.text, bad), path, "contains", bad, got.text)
	}
	expect.True(t, len(got.text) <= 100_000, path, "has", len(got.text), "bytes")
	for _, need := range []string{"<main ", "<h1>", `lang="en"`, "<title>"} {
		expect.Contains(t, got.text, need, path, "has no")
	}
}

// The script and the styles are small, and browsers keep them.
func TestStaticFiles(t *testing.T) {
	s := newSite(t, web.Options{})
	text := s.browser().page("/ui/login", 200)
	checkPage(t, "/ui/login", s.browser().get("/ui/login"))
	size := len(text)
	for _, part := range strings.Split(text, `="/ui/static/`)[1:] {
		path, _, _ := strings.Cut(part, `"`)
		got := s.browser().get("/ui/static/" + path)
		size += len(got.text)
		expect.Equal(t, got.StatusCode, 200, path)
		expect.Contains(t, got.Header.Get("Cache-Control"), "immutable", path)
		expect.NotEqual(t, got.Header.Get("Content-Type"), "", path)
		if strings.HasSuffix(path, ".js") {
			expect.Compare(t, strings.Count(got.text, "\n"), "<=", 300, "the script has more than 300 lines")
		}
	}
	expect.True(t, size <= 100_000, "the first page has", size, "bytes")
	for _, path := range []string{"/ui/static/x/none.css", "/ui/static/x/..%2Fdoc.go", "/ui/none", "/ui/static/x"} {
		expect.Equal(t, s.browser().get(path).StatusCode, 404, path)
	}
}
