package dashboard_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/redisstate"
)

// A program is a running round, whose worker reports what it prints.
type program struct {
	*site
	redisstate.Claim
	printed string
}

func (s *site) start() *program {
	s.Helper()
	got := expect.Result(s.store.Claim(s.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 3600})).Value(s)
	expect.Equal(s, len(got.Claims), 1, "claims")
	return &program{site: s, Claim: got.Claims[0]}
}

// print prints a text. A worker reports the last 4 KiB.
func (p *program) print(text string) {
	p.Helper()
	p.printed += text
	tail := testspace.Tail(p.printed)
	tail.Text = tail.Text[max(0, len(p.printed)-4096):]
	expect.Result(p.store.Renew(p.Context(), 3600, redisstate.LeaseRenewal{ID: p.Task.ID, Round: p.Task.Round, Claim: p.ID, Report: redisstate.LiveReport{Tail: tail}})).OK(p)
}

// restart serves the dashboard at an address, with the next process if there was another one before.
func (s *site) restart(old *httptest.Server, handler http.Handler) *httptest.Server {
	s.Helper()
	address := "127.0.0.1:0"
	if old != nil {
		address = old.Listener.Addr().String()
		old.CloseClientConnections()
		old.Close()
	}
	var config net.ListenConfig
	listener := expect.Result(config.Listen(s.Context(), "tcp", address)).Value(s)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	server.Start()
	s.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// A page appends the output of a running round. What it has shown before stays the same element, with the selection and the place of its reader, and neither
// a new connection nor a new server repeats or loses a part.
func TestOutputInTheBrowser(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(1, "")
	p := s.start()
	p.print("one \x1b[31mred\n")
	server := s.restart(nil, s)
	b := s.tab(server)
	b.login(access.Viewer)
	b.open("/ui/tasks/1")
	const text = `document.querySelector("#tail").textContent`
	shows := func(state, want string) {
		t.Helper()
		b.sees(state, text+" === `"+want+"`")
	}
	shows("the output so far", "one red\n")
	_ = eval[bool](b, `window.kept = document.querySelector("#tail").childNodes[1]; getSelection().selectAllChildren(document.querySelector("#tail span")); true`)
	p.print("two €\n")
	shows("what was printed since", "one red\ntwo €\n")
	p.print("<script>alert(1)</script>\u202e\xe2\x82")
	shows("markup as text", "one red\ntwo €\n<script>alert(1)</script>\\\\u202e")
	p.print("\xac\n")
	want := "one red\ntwo €\n<script>alert(1)</script>\\\\u202e€\n"
	shows("a divided character", want)
	b.sees("the first text stays, with the selection", `kept.isConnected && kept.data === "one " && getSelection().toString() === "red"`)
	b.sees("the colour goes on", `[...document.querySelectorAll("#tail span")].every(s => s.className === "f1")`)
	server = s.restart(server, s)
	p.print("three\n")
	want += "three\n"
	shows("the output after a new connection", want)
	s.restart(server, s.dashboard(web.Options{}))
	p.print("four\n")
	want += "four\n"
	shows("the output after a new server", want)
	b.sees("the first text stays", `kept.isConnected`)

	p.print(strings.Repeat("a line of output\n", 200))
	b.sees("many lines", text+`.endsWith("a line of output\n")`)
	b.sees("a reader at the end stays there", `(e => e.scrollHeight > e.clientHeight && e.scrollHeight - e.scrollTop - e.clientHeight < 5)(document.querySelector("#tail"))`)
	for i := range 18 {
		p.print(fmt.Sprintf("%s\nline %d\n", strings.Repeat("lines\n", 650), i))
		b.sees("more lines", fmt.Sprintf("%s.endsWith(`line %d\n`)", text, i))
		if i == 15 {
			_ = eval[bool](b, `(e => { window.middle = [...e.childNodes].at(-4); e.scrollTop = e.scrollHeight / 2; window.place = () => { const r = document.createRange(); r.selectNode(middle); return r.getBoundingClientRect().top }; window.before = place() })(document.querySelector("#tail")); true`)
		}
	}
	moved := eval[float64](b, `middle.isConnected ? Math.abs(place() - before) : 1e9`)
	expect.True(t, moved <= 2, "the text of another reader has moved by", moved, "pixels")
	p.print(strings.Repeat("x", 3000) + "\nlast\n")
	b.sees("the beginning of a long line", text+".endsWith(`x … 1,000 bytes more\nlast\n`)")
	n := eval[int](b, text+".length")
	expect.Compare(t, n, "<=", 64<<10)
	expect.Compare(t, n, ">=", 60<<10)
	testspace.End(t, s.store, p.Claim, rules.Result{Exit: "0", Seconds: 1, Output: "all of it\n"})
	b.text("all of it")
	b.sees("the whole output replaces its end", `document.querySelector("#tail") === null`)
}

// The page of a lost round shows the last part of its output that Redis knows, also while the next round runs.
func TestTailOfALostRound(t *testing.T) {
	s := newSite(t, web.Options{})
	s.open(1, "")
	p := s.start()
	p.print("one\n<i>two</i> \u202e\n")
	found := testspace.Read(t, s.store, p.Task.ID)
	move, ok := rules.Settle(found, found.LeaseUntil+1, nil)
	expect.MustTrue(t, ok, move)
	expect.MustEqual(t, move.Verb, rules.VerbLose)
	testspace.Apply(t, s.store, move, nil)
	b := s.as(access.Viewer)
	path := fmt.Sprint("/ui/tasks/", p.Task.ID)
	lost := func(path string) {
		t.Helper()
		got := b.get(path)
		checkPage(t, path, got)
		expect.Contains(t, got.text, "Last part of the output")
		expect.Contains(t, got.text, "one\n&lt;i&gt;two&lt;/i&gt; \\u202e\n")
		expect.NotContains(t, got.text, "has printed nothing")
		expect.NotContains(t, got.text, `id="tail"`)
	}
	lost(path)
	next := s.start()
	s.Handler = s.dashboard(web.Options{})
	lost(path + "?round=0")
	text := b.page(path, 200)
	expect.NotContains(t, text, "Last part of the output")
	expect.Contains(t, text, `id="tail"`)
	testspace.End(t, s.store, next.Claim, rules.Result{Exit: "0", Output: "whole"})
	s.Handler = s.dashboard(web.Options{})
	text = b.page(path, 200)
	expect.NotContains(t, text, "Last part of the output")
	expect.Contains(t, text, "whole")
}
