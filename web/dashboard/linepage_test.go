package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/web"
)

// A line leads to the address with its filter, whose page shows the same line. The page of an invalid line keeps it, says which word is wrong, and shows no
// tasks. The words that complete a line are bounded, and those that the role may see.
func TestLineOfTasks(t *testing.T) {
	s := newSite(t, web.Options{})
	_, _, err := s.store.TakeName(t.Context(), presence.WorkerInfo{Name: "lab 1/<b>", Boot: "b", Lease: 3600, State: "working", Slots: 2}, presence.PriorOwner{})
	expect.NoError(t, err)
	var all []manager.Definition
	for i := range 250 {
		d := testspace.Define(fmt.Sprint("program-", i), "rsync:/p/run.sh", "")
		if d.Group, d.Owner = fmt.Sprint("campaign ", i), "ada"; i%2 == 0 {
			d.Group, d.Owner = fmt.Sprint("submitter/", i), "submitter"
		}
		all = append(all, d)
	}
	all[249].Program, all[249].Queue, all[248].Program = "p\u202e", "gpu/a", strings.Repeat("long", 50)
	expect.Result(s.manager.Open(t.Context(), all...)).OK(t)
	b := s.as(access.Viewer)
	got := b.get("/ui/tasks?line=--state+open,failed+--worker+%27lab+1%27+7&column=id&column=state&cursor=x")
	to := "/ui/tasks?column=id&column=state&id=7&state=open&state=failed&worker=lab+1"
	expect.Equal(t, got.StatusCode, http.StatusSeeOther)
	expect.Equal(t, got.Header.Get("Location"), to)
	text := b.page(to, 200)
	expect.Contains(t, text, `value="--state open,failed --worker &#39;lab 1&#39; 7"`)
	expect.Contains(t, text, `<input type="hidden" name="column" value="state">`)
	text = b.page("/ui/tasks?line=--worker+%22%3Cb%3E%22+--state+%22%3Cb%3E%22", 200)
	expect.Contains(t, text, `value="--worker &#34;&lt;b&gt;&#34; --state &#34;&lt;b&gt;&#34;"`)
	expect.Contains(t, text, `aria-invalid="true" aria-describedby="wrong"`)
	expect.Contains(t, text, `invalid state &#34;&lt;b&gt;&#34;: want open, running`)
	expect.NotContains(t, text, `<tr id="task-`)
	expect.NotContains(t, text, "No tasks")
	words := func(role access.Role) (of map[string][]string) {
		t.Helper()
		got := s.as(role).get("/ui/tasks/words.json")
		err := json.Unmarshal([]byte(got.text), &of)
		expect.NoError(t, err)
		expect.MustEqual(t, got.StatusCode, 200)
		expect.MustTrue(t, len(got.text) <= 100_000, err, got.StatusCode, got.text)
		return of
	}
	seen, own := words(access.Viewer), words(access.Submitter)
	for _, c := range []struct{ flag, word string }{{"--worker", "'lab 1/<b>'"}, {"--queue", "gpu/a"}, {"--campaign", "'campaign 1'"}, {"--owner", "ada"}, {"--state", "failed"}, {"--limit", "500"}} {
		expect.True(t, slices.Contains(seen[c.flag], c.word), c.flag, c.word, seen[c.flag])
		expect.Equal(t, slices.Contains(own[c.flag], c.word), c.flag == "--state" || c.flag == "--limit", "of a submitter:", c.flag, c.word)
	}
	expect.Equal(t, seen["--oldest-first"], nil)
	expect.True(t, seen["--exit"] != nil, seen)
	expect.Len(t, seen["--campaign"], 200)
	expect.Compare(t, len(seen["--of"]), ">", 10)
	expect.Compare(t, len(own["--of"]), ">", 10)
	expect.True(t, !slices.Contains(own["--of"], "program-1"), own)
	expect.True(t, slices.Contains(own["--campaign"], "submitter/0"), own)
	for _, word := range slices.Concat(seen["--of"], own["--of"]) {
		expect.True(t, !strings.ContainsAny(word, "\u202e"), word)
		expect.Compare(t, len(word), "<", 200, word)
	}
	s.browser().page("/ui/tasks/words.json", http.StatusSeeOther)
}

// A person types a line, which is completed word by word, and sends it with the keyboard. Without JavaScript, the line works, too.
func TestLineInTheBrowser(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(2, "")
	_, _, err := s.store.TakeName(t.Context(), presence.WorkerInfo{Name: "lab 1", Boot: "b", Lease: 3600, State: "working", Slots: 2}, presence.PriorOwner{})
	expect.NoError(t, err)
	server := s.serve()
	b := s.tab(server)
	b.login(access.Viewer)
	b.open("/ui/tasks")
	b.do(chromedp.Click("#line"))
	offers := func(state, what string) {
		t.Helper()
		b.sees(state, fmt.Sprintf(`[...document.querySelector("#words").options].some(o => o.value === %q)`, what))
	}
	offers("the flags", "--older-than")
	b.do(chromedp.KeyEvent("--wor"))
	offers("the flags that begin so", "--worker")
	b.sees("no other flags", `document.querySelector("#words").options.length === 1`)
	b.do(chromedp.KeyEvent("ker "))
	offers("the workers", "--worker 'lab 1'")
	b.do(chromedp.KeyEvent("'lab 1' --state open,fa"))
	offers("the states", "--worker 'lab 1' --state open,failed")
	b.do(chromedp.KeyEvent("iled"), chromedp.KeyEvent(kb.Enter))
	b.sees("the address has the filter", `location.search === "?state=open&state=failed&worker=lab+1"`)
	b.sees("the line stays", `document.querySelector("#line").value === "--state open,failed --worker 'lab 1'"`)
	without := s.tab(server)
	_, err = chromedp.Call(without.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	expect.NoError(t, err)
	without.open("/ui/login?next=/ui/tasks")
	without.do(chromedp.SendKeys("#token", s.tokens[access.Viewer]), chromedp.Click("main button"), chromedp.WaitVisible("#line"))
	without.do(chromedp.SendKeys("#line", "--stat failed"), chromedp.KeyEvent(kb.Enter))
	without.text("unknown flag: --stat")
	without.do(chromedp.SetValue("#line", "2"), chromedp.Click("#line"), chromedp.KeyEvent(kb.Enter))
	without.sees("the address has the id", `location.search === "?id=2" && document.querySelector("#task-2") !== null && document.querySelector("#task-1") === null`)
}
