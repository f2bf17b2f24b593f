package dashboard_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// chromium is the browser of all tests. It starts with the first test that needs it, and ends after the last one.
var chromium struct {
	sync.Once
	context.Context
	end func()
	err error
}

func startChromium() {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath("chromium"), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(time.Hour))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	c, end := chromedp.NewContext(allocator)
	chromium.Context, chromium.end = c, func() { end(); endAllocator() }
	chromium.err = chromedp.Do(c)
}

func endChromium() {
	if chromium.end != nil {
		chromium.end()
	}
}

// A tab is a page in a browser of its own, with its own cookies.
type tab struct {
	*site
	ctx    context.Context
	server *httptest.Server
}

// tab opens a tab of the dashboard at an address.
func (s *site) tab(server *httptest.Server) *tab {
	s.Helper()
	chromium.Do(startChromium)
	expect.MustTrue(s, chromium.err == nil, "start chromium, which scripts/setup chromium installs", chromium.err)
	ctx, end := chromedp.NewContext(chromium.Context, chromedp.WithNewBrowserContext())
	s.Cleanup(end)
	expect.NoError(s, chromedp.Do(ctx))
	return &tab{s, ctx, server}
}

// serve serves the dashboard until the end of the test.
func (s *site) serve() *httptest.Server {
	server := httptest.NewServer(s)
	s.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	expect.NoError(b, chromedp.Do(b.ctx, steps...))
}

func try[T any](b *tab, script string) (T, error) {
	return chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

func eval[T any](b *tab, script string) T {
	b.Helper()
	value := expect.Result(try[T](b, script)).Value(b, script)
	return value
}

func (b *tab) open(path string) { b.Helper(); b.do(chromedp.Navigate(b.server.URL + path)) }

// sees waits until a script returns true. While the browser goes to another page, a script can fail.
func (b *tab) sees(state, script string) {
	b.Helper()
	expect.Eventually(b, state, func() bool {
		ok, err := try[bool](b, script)
		return err == nil && ok
	})
}

// text waits until the page contains a text.
func (b *tab) text(text string) {
	b.Helper()
	b.sees("the page shows "+text, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// login logs in with a link for the token of a role.
func (b *tab) login(role access.Role) {
	b.Helper()
	key := expect.Result(b.admin.AddLogin(b.Context(), string(role), time.Hour)).Value(b)
	b.open("/ui/login?key=" + key)
	b.text("Log out")
}

// No page violates a rule of axe-core, in light and in dark, on a desktop and on a phone. No page is wider than a phone. And no text of a program runs.
func TestAccessibility(t *testing.T) {
	s := newSite(t, web.Options{})
	s.fill()
	b := s.tab(s.serve())
	axe := expect.Result(os.ReadFile("testdata/axe.min.js")).Value(t)
	check := func(b *tab, path string) {
		b.open(path)
		_ = eval[bool](b, string(axe)+`; document.querySelectorAll("details").forEach(d => { d.open = true }); true`)
		for _, scheme := range []string{"light", "dark"} {
			expect.Result(chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})).OK(t)
			problems := eval[[]string](b, `axe.run().then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`)
			expect.Len(t, problems, 0, path, scheme)
		}
		b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
		expect.Compare(t, eval[int](b, "document.documentElement.scrollWidth"), "<=", 360, path)
		tall := eval[[]string](b, `[...document.querySelectorAll("nav a")].filter(e => e.offsetHeight > 45).map(e => e.innerText)`)
		expect.True(t, len(tall) == 0, path, "breaks labels of the navigation on a phone", tall)
		b.do(chromedp.EmulateViewport(1280, 800))
		expect.True(t, !eval[bool](b, `document.querySelector("main script, main style, main [onclick], main b, main i") !== null`), path, "has an element that a program has written")
	}
	check(b, "/ui/login")
	b.login(access.Operator)
	for _, path := range slices.Sorted(maps.Keys(pages)) {
		check(b, path)
	}
	s = serialSite(t, web.Options{})
	s.run("plotted", 8, func(i int) rules.Result {
		return rules.Result{Exit: strconv.Itoa(i / 7), Seconds: 1, JSON: fmt.Sprintf(`{"loss":%d}`, i)}
	})
	b = s.tab(s.serve())
	b.login(access.Operator)
	for _, choice := range []string{"", "?kind=line&x=lr&y=result.loss&colour=opt", "?kind=heat&x=lr&y=opt&colour=result.loss", "?facet=opt&colour=lr", "?pattern=("} {
		check(b, "/ui/campaigns/plotted"+choice)
	}
}

// A person opens a campaign from a script and a CSV, and sees its plot when the results come in, without a reload.
func TestCampaignInABrowser(t *testing.T) {
	s := newSite(t, web.Options{})
	b := s.tab(s.serve())
	b.login(access.Operator)
	b.open("/ui/new-campaign")
	script, rows := filepath.Join(t.TempDir(), "sim.sh"), filepath.Join(t.TempDir(), "points.csv")
	expect.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho $1\n"), 0o600))
	expect.NoError(t, os.WriteFile(rows, []byte("lr,opt\n0.1,adam\n0.2,sgd\n"), 0o600))
	b.do(chromedp.SendKeys(`[name=campaign]`, "first"), chromedp.SetUploadFiles(`[name=upload]`, []string{script}), chromedp.SetUploadFiles(`[name=file]`, []string{rows}),
		chromedp.SendKeys(`[name=input]`, "--lr {lr}"), chromedp.Click(`[name=preview]`))
	b.text("The campaign gets 2 tasks")
	b.text("--lr 0.1")
	b.do(chromedp.Click(`[name=open]`))
	b.text("0 of 2 tasks")
	s.finish(2, func(i int) rules.Result {
		return rules.Result{Exit: "0", Seconds: 1, JSON: fmt.Sprintf(`{"loss":%d}`, i)}
	})
	b.text("2 of 2 tasks")
	b.sees("the plot", `document.querySelector("svg.plot path.s0") !== null`)
	b.do(chromedp.SetValue(`[name=kind]`, "line"), chromedp.Click(`.choices button`))
	b.text("Median of result.loss over lr")
	b.sees("the address has the choices", `location.search.includes("kind=line") && location.search.includes("x=lr")`)
}

// A person retries one of two groups of failures of a campaign. The tasks of the other group stay as they are.
func TestRetryOfAGroupInTheBrowser(t *testing.T) {
	s := newSite(t, web.Options{})
	s.run("night", 5, func(i int) rules.Result {
		return rules.Result{Exit: "3", Seconds: 1, Error: []string{"MemoryError: no room\n", "ValueError: lr is negative\n"}[i/3]}
	})
	b := s.tab(s.serve())
	b.login(access.Operator)
	b.open("/ui/campaigns/night")
	b.do(chromedp.Click(`a[aria-label^="Retry this group: 2 tasks"]`))
	b.do(chromedp.WaitVisible(`button[formaction="/ui/tasks/do"]`), chromedp.Click(`button[formaction="/ui/tasks/do"]`))
	b.text("2 tasks retried.")
	expect.Equal(t, s.count(task.Open), 2)
	expect.Equal(t, s.count(task.Failed), 3)
}

// A person drains a worker, and lets it work again. A form that another site could have made does nothing.
func TestDrainInTheBrowser(t *testing.T) {
	s := newSite(t, web.Options{})
	w := presence.WorkerInfo{Name: "lab 1/a", Host: "lab", Lease: 3600, State: "working", Slots: 2}
	expect.Result(s.store.Presence.WorkerHeartbeat(t.Context(), w)).OK(t)
	drained := func() bool {
		by, err := s.store.Presence.WorkerHeartbeat(t.Context(), w)
		return err == nil && by != ""
	}
	const drain, resume = `button[aria-label="Drain lab 1/a"]`, `button[aria-label="Resume lab 1/a"]`
	b := s.tab(s.serve())
	b.login(access.Operator)
	b.open("/ui/workers")
	b.do(chromedp.WaitVisible(drain), chromedp.Click(drain), chromedp.WaitVisible(resume))
	expect.True(t, drained(), "the worker does not drain")
	b.do(chromedp.Click(resume), chromedp.WaitVisible(drain))
	expect.True(t, !drained(), "the worker still drains")
	_ = eval[bool](b, `document.querySelectorAll("[name=csrf]").forEach(field => { field.value = "0".repeat(32) }); true`)
	b.do(chromedp.Click(drain))
	b.text("the form is of another session")
	expect.True(t, !drained(), "a form without the text of the session drains the worker")
}

// A person logs in with the keyboard alone, and goes to the tasks.
func TestKeyboard(t *testing.T) {
	s := newSite(t, web.Options{})
	b := s.tab(s.serve())
	b.open("/ui/tasks")
	b.do(chromedp.KeyEvent(kb.Tab))
	expect.Equal(t, eval[string](b, "document.activeElement.textContent"), "Skip to the content", "the first element is")
	b.do(chromedp.KeyEvent(kb.Enter))
	for range 10 {
		if eval[string](b, "document.activeElement.id") == "token" {
			break
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.do(chromedp.KeyEvent(s.tokens[access.Viewer]), chromedp.KeyEvent(kb.Enter))
	b.text("viewer (viewer)")
	expect.Equal(t, eval[string](b, "location.pathname"), "/ui/tasks", "the login leads to")
}

// A page stays up to date, keeps what its reader has ticked, says when it has lost its connection, and comes back.
func TestLivePage(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(2, "")
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	server := httptest.NewUnstartedServer(s)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	b := s.tab(server)
	b.login(access.Operator)
	b.open("/ui/tasks")
	_ = eval[bool](b, `document.querySelector("#task-1 input").click(); window.kept = document.querySelector("#task-1"); true`)
	local := eval[bool](b, `[...document.querySelectorAll("time")].every(t => t.title === t.dateTime)`)
	expect.True(t, local, "times are not those of the reader")
	s.open(1, "")
	b.sees("the new task", `document.querySelector("#task-3") !== null`)
	b.sees("the tick and the row stay", `document.querySelector("#task-1 input").checked && window.kept === document.querySelector("#task-1")`)
	server.CloseClientConnections()
	server.Close()
	b.text("Connection lost.")
	s.open(1, "")
	listener, err = config.Listen(t.Context(), "tcp", listener.Addr().String())
	expect.NoError(t, err)
	again := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}}
	again.Start()
	t.Cleanup(func() { again.CloseClientConnections(); again.Close() })
	b.sees("the task that came meanwhile", `document.querySelector("#task-4") !== null`)
	b.text("Connected again.")
}

// Filter, tick, confirm: a person cancels two tasks with the mouse, with and without JavaScript.
func TestBulkInTheBrowser(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(4, "")
	server := s.serve()
	for i, scripts := range []bool{true, false} {
		b := s.tab(server)
		expect.Result(chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts})).OK(t)
		b.open("/ui/login")
		b.do(chromedp.SendKeys("#token", s.tokens[access.Operator]), chromedp.Click("main button"), chromedp.WaitVisible(`nav a[href="/ui/tasks"]`), chromedp.Click(`nav a[href="/ui/tasks"]`))
		first, second := fmt.Sprintf("#task-%d input", 2*i+1), fmt.Sprintf("#task-%d input", 2*i+2)
		b.do(chromedp.WaitVisible(first), chromedp.Click(first), chromedp.Click(second), chromedp.Click(`button[form=pick][value=cancel]`))
		b.do(chromedp.WaitVisible(`button[formaction="/ui/tasks/do"]`), chromedp.Click(`button[formaction="/ui/tasks/do"]`))
		b.text("2 tasks cancelled.")
		expect.Equal(t, s.count(task.Expired), int64(2*i+2), "scripts", scripts, "cancelled tasks")
	}
}
