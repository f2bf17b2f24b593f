package dashboard_test

import (
	"bytes"
	"fmt"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
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
)

// run opens tasks of a campaign, and runs each with the result that a function returns.
func (s *site) run(group string, n int, result func(i int) rules.Result) {
	s.Helper()
	var all []manager.Definition
	for i := range n {
		d := testspace.Define("p", "rsync:/p/run.sh", fmt.Sprint(i))
		d.Group, d.Meta = group, fmt.Sprintf(`{"lr":%d,"opt":"%s","<b>":"\u202e"}`, i%5, []string{"sgd", "<i>adam"}[i%2])
		all = append(all, d)
	}
	expect.Result(s.manager.Open(s.Context(), all...)).OK(s)
	s.finish(n, result)
}

// finish runs open tasks.
func (s *site) finish(n int, result func(i int) rules.Result) {
	s.Helper()
	for i := range n {
		got := expect.Result(s.store.Claim(s.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 3600})).Value(s)
		expect.MustLen(s, got.Claims, 1)
		testspace.End(s, s.store, got.Claims[0], result(i))
	}
}

// A campaign shows its progress, its failures with an example, and a plot, whose choices are in the address.
func TestCampaign(t *testing.T) {
	s := newSite(t, web.Options{})
	s.run("night/1", 8, func(i int) rules.Result {
		if i == 7 {
			return rules.Result{Exit: "3", Seconds: 1, Error: "Traceback\nValueError: <script>bad\u202e 7\n"}
		}
		return rules.Result{Exit: "0", Seconds: 1, JSON: fmt.Sprintf(`{"loss":%d.5}`, i), Output: fmt.Sprintf("acc=%d\n", 10*i)}
	})
	b := s.as(access.Operator)
	list := b.page("/ui/campaigns", 200)
	expect.Contains(t, list, `href="/ui/campaigns/night%2F1"`)
	expect.Contains(t, list, "finished with failures")
	expect.True(t, !strings.Contains(b.page("/ui/campaigns?q=day", 200), "night"), "the search for another name finds it")
	const at = "/ui/campaigns/night%2F1"
	got := b.get(at)
	checkPage(t, at, got)
	for _, part := range []string{
		"Campaign night/1", "8 of 8 tasks", "<strong>1 task</strong>", "exit status 3", "ValueError", `href="/ui/tasks/confirm?campaign=night%2F1&amp;do=retry&amp;failure=`, `<svg xmlns="http://www.w3.org/2000/svg" class="plot"`,
		"result.loss over lr", `<option value="result.loss" selected>`, `href="/ui/campaigns/night%2F1/plot.png"`, `href="/ui/api/v1/results?fields=auto&amp;group=night%2F1&amp;no_output=true&amp;spreadsheet=true"`, "<th scope=\"col\">median of result.loss</th>",
		`href="/ui/tasks?campaign=night%2F1"`, `href="/ui/tasks?campaign=night%2F1&amp;failure=`, `href="/ui/tasks/8?round=0"`,
	} {
		expect.Contains(t, got.text, part)
	}
	chosen := url.Values{"kind": {"line"}, "x": {"lr"}, "y": {"match.acc"}, "colour": {"opt"}, "facet": {"opt"}, "yscale": {"log"}, "pattern": {`acc=(?P<acc>\d+)`}}
	got = b.get(at + "?" + chosen.Encode())
	checkPage(t, at, got)
	expect.Contains(t, got.text, "Median of match.acc over lr")
	expect.Contains(t, got.text, `href="/ui/campaigns/night%2F1/plot.svg?`+strings.ReplaceAll(chosen.Encode(), "&", "&amp;")+`"`)
	for address, problem := range map[string]string{
		"?x=none": "No result has the column none", "?kind=pie": "unknown kind", "?pattern=(": "no regular expression", "?kind=line&y=opt": "must be numbers", "?pattern=(a{500})": "repeats too much",
		"?x=%E2%80%AE%3Cscript%3E": "No result has the column", "?fields=x": "unknown",
	} {
		got := b.get(at + address)
		checkPage(t, address, got)
		expect.Contains(t, got.text, problem, address)
	}

	svg := b.get(at + "/plot.svg?" + chosen.Encode())
	expect.Equal(t, svg.StatusCode, 200)
	expect.Equal(t, svg.Header.Get("Content-Type"), "image/svg+xml")
	expect.True(t, strings.HasPrefix(svg.Header.Get("Content-Disposition"), "attachment"), svg.StatusCode, svg.Header, svg.text)
	expect.True(t, strings.HasPrefix(svg.text, "<svg "), svg.StatusCode, svg.Header, svg.text)
	picture := b.get(at + "/plot.png")
	expect.Result(png.Decode(strings.NewReader(picture.text))).OK(t)
	csv := b.get("/ui/api/v1/results?group=night%2F1&no_output=true")
	expect.Equal(t, csv.StatusCode, 200)
	expect.Contains(t, csv.text, "result.loss")
	expect.Equal(t, strings.Count(csv.text, "\n"), 9)
	b.page(at+"/plot.svg?x=none", 404)
	b.page("/ui/campaigns/none", 404)
	other := s.as(access.Submitter)
	other.page(at, 403)
	other.page(at+"/plot.svg", 403)
	expect.True(t, !strings.Contains(other.page("/ui/campaigns?q=night", 200), "night/1"), "a submitter sees the campaign of others")

	retry := regexp.MustCompile(`href="/ui/tasks/confirm\?([^"]*)"`).FindStringSubmatch(b.page(at, 200))
	expect.MustTrue(t, retry != nil, "no button to retry the group")
	expect.True(t, !strings.Contains(s.as(access.Viewer).page(at, 200), "/ui/tasks/confirm"), "a viewer sees the button")
	of := strings.ReplaceAll(retry[1], "&amp;", "&")
	expect.Contains(t, b.page("/ui/tasks/confirm?"+of, 200), "Retry 1 task")
	b.post("/ui/tasks/do", url.Values{"do": {"retry"}, "tasks": {strings.ReplaceAll(of, "do=retry&", "")}, "expect": {"1"}})
	shows := func(progress string) { // the page may be a second old
		t.Helper()
		expect.Eventually(t, progress, func() bool { return strings.Contains(b.page(at, 200), progress) })
	}
	shows("7 of 8 tasks")
	s.finish(1, func(int) rules.Result { return rules.Result{Exit: "0", Seconds: 1, JSON: `{"loss":9}`} })
	shows("8 of 8 tasks")
}

// send sends the form of a new campaign, with files.
func (b *browser) send(values url.Values, files map[string]string) answer {
	b.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	values.Set("csrf", b.csrf)
	for name := range values {
		_ = w.WriteField(name, values.Get(name))
	}
	for name, content := range files {
		part := expect.Result(w.CreateFormFile(name, "sim<i>.tar")).Value(b)
		_, _ = part.Write([]byte(content))
	}
	w.Close()
	r := httptest.NewRequest(http.MethodPost, "/ui/new-campaign", &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return b.do(r)
}

var formKey = regexp.MustCompile(`name="key" value="([A-Z2-7]+)"`)

func keyOf(t *testing.T, page string) string {
	t.Helper()
	found := formKey.FindStringSubmatch(page)
	expect.MustTrue(t, found != nil, "no key in", page)
	return found[1]
}

// A form with a script and a CSV opens a campaign, after a preview. If it is sent twice, the campaign is opened once.
func TestNewCampaign(t *testing.T) {
	s := newSite(t, web.Options{})
	b := s.as(access.Operator)
	first := b.get("/ui/new-campaign")
	checkPage(t, "form", first)
	key := keyOf(t, first.text)
	values := func(pairs ...string) url.Values {
		v := url.Values{"key": {key}, "campaign": {"grid"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	script := map[string]string{"upload": "#!/bin/sh\necho $1\n", "file": "rate,mode\n0.1,fast\n0.2,'<b>'\n0.2,'<b>'\n"}
	got := b.send(values("preview", "1", "input", "--rate {rate}"), script)
	checkPage(t, "preview", got)
	for _, part := range []string{"3 tasks, of which 1 repeat", "<code>--rate 0.1</code>", "0.1,fast", "selected", `value="grid"`} {
		expect.Contains(t, got.text, part)
	}
	expect.Equal(t, keyOf(t, got.text), key, "the key of the form stays")
	expect.Equal(t, expect.Result(s.manager.Counts(t.Context())).Value(t).Total(), 0, "tasks after the preview")
	stored := regexp.MustCompile(`<option value="(redis:[0-9a-f]{64} [^"]+)" selected>`).FindStringSubmatch(got.text)
	expect.MustTrue(t, stored != nil, "the form does not keep the program", got.text)
	for range 2 {
		got = b.send(values("stored", stored[1], "rows", script["file"], "timeout", "60", "max_fails", "2"), nil)
		expect.Equal(t, []string{fmt.Sprint(got.StatusCode), got.Header.Get("Location")}, []string{"303", "/ui/campaigns/grid"}, got.text)
	}
	expect.Equal(t, expect.Result(s.manager.Counts(t.Context(), "grid")).Value(t)[task.Open], 3, "open tasks")
	status := expect.Result(s.manager.GroupStatus(t.Context(), "grid")).Value(t)
	expect.True(t, status.Closed, "the campaign is closed, as one of tdf open is")
	one := expect.Result(s.manager.Get(t.Context(), 1)).Value(t)
	expect.Equal(t, one.Input, "0.1 fast")
	expect.MustTrue(t, one.MaxFails != nil, one.Input, one.MaxFails, one.Program)
	expect.Equal(t, *one.MaxFails, 2)
	expect.True(t, strings.HasPrefix(one.Program, "sim"), one.Input, one.MaxFails, one.Program)

	for name, c := range map[string]struct {
		values  url.Values
		files   map[string]string
		problem string
	}{
		"taken":        {url.Values{"key": {"ABC"}, "campaign": {"grid"}, "grid": {"a=1"}, "stored": {stored[1]}}, nil, "grid"},
		"no name":      {values("campaign", " "), nil, "name the campaign"},
		"no rows":      {values("campaign", "x", "stored", stored[1]), nil, "either rows or a grid"},
		"rows, grid":   {values("campaign", "x", "stored", stored[1], "rows", "a\n1\n", "grid", "a=1"), nil, "either rows or a grid"},
		"two files":    {values("campaign", "x", "rows", "a\n1\n"), script, "leave one of them out"},
		"no program":   {values("campaign", "x", "grid", "a=1"), nil, "choose a program"},
		"bad grid":     {values("campaign", "x", "stored", stored[1], "grid", "a=1-10"), nil, "parse grid"},
		"bad rows":     {values("campaign", "x", "stored", stored[1], "rows", "a,b\n1\n"), nil, "line 2"},
		"bad archive":  {values("campaign", "x", "grid", "a=1"), map[string]string{"upload": "no archive"}, "archive"},
		"bad template": {values("campaign", "x", "stored", stored[1], "grid", "a=1", "input", "{b}"), nil, "b"},
		"bad number":   {values("campaign", "x", "stored", stored[1], "grid", "a=1", "timeout", "-1"), nil, "whole number"},
		"bad program":  {values("campaign", "x", "stored", "redis:"+strings.Repeat("0", 64)+" p", "grid", "a=1"), nil, "redis:"},
	} {
		got := b.send(c.values, c.files)
		checkPage(t, name, got)
		expect.Equal(t, got.StatusCode, 422, name)
		expect.Contains(t, got.text, c.problem, name)
		expect.Contains(t, got.text, `role="alert"`, name)
	}
	expect.Equal(t, expect.Result(s.manager.Counts(t.Context())).Value(t).Total(), 3, "tasks after invalid forms")

	own := s.as(access.Submitter)
	key = keyOf(t, own.page("/ui/new-campaign", 200))
	expect.Equal(t, own.send(values("grid", "a=1..3", "rows", ""), script).StatusCode, 422, "a submitter opened a campaign with any name")
	delete(script, "file")
	got = own.send(values("campaign", "submitter/g", "grid", "a=1..3"), script)
	expect.Equal(t, got.Header.Get("Location"), "/ui/campaigns/submitter%2Fg", got.text)
	expect.Contains(t, own.page("/ui/campaigns/submitter%2Fg", 200), "0 of 3 tasks")
	expect.Contains(t, own.page("/ui/campaigns", 200), "submitter/g")
}

// Whatever becomes of a form, its files do not stay on the disk.
func TestFilesOfForms(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := serialSite(t, web.Options{})
	b := s.as(access.Operator)
	b.page("/ui/new-campaign", 200)
	csrf := b.csrf
	for name, c := range map[string]struct {
		csrf   string
		bytes  int
		status int
	}{"of another session": {"x", 2 << 20, 403}, "too large": {csrf, 33 << 20, 422}, "invalid": {csrf, 2 << 20, 422}} {
		b.csrf = c.csrf
		files := map[string]string{"upload": strings.Repeat("x", c.bytes)}
		got := b.send(url.Values{"key": {"ABC"}, "campaign": {"c"}}, files)
		expect.Equal(t, got.StatusCode, c.status, name)
		expect.Len(t, expect.Result(os.ReadDir(dir)).Value(t), 0, name)
	}
}
