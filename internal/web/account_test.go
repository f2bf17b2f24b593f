package web

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/internal/webtest"
)

// withoutToken are the patterns of answers that do not depend on the namespace, or are about this process.
var withoutToken = []string{
	"/", "/ui", "/ui/", "GET /{$}", "GET /healthz", "GET /readyz", "GET /docs", "GET /errors", "GET /openapi.json", "GET /openapi.yaml",
	"GET /ui/static/{version}/{name}", "GET /ui/login", "POST /ui/login", "POST /ui/logout",
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// requestOf returns a request for a pattern, by an operator.
func (s *site) requestOf(pattern, cookie, csrf string) *http.Request {
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		method, path = "GET", pattern
	}
	path = strings.NewReplacer("{path...}", "v1/queues", "{name}", "n", "{sha256}", strings.Repeat("0", 64), "{session}", "w.AAAAAAAAAAAAAAAAAAAAAAAAAA",
		"{action}", "cancel", "{do}", "cancel", "{key}", "k").Replace(path)
	path = parameter.ReplaceAllString(path, "1")
	if strings.HasPrefix(path, "/ui") {
		r := webtest.Call(s.Context(), "", method, path, url.Values{"csrf": {csrf}}.Encode(), "Content-Type: application/x-www-form-urlencoded")
		r.Header.Set("Cookie", cookie)
		return r
	}
	for _, of := range s.routes {
		if pattern == of.method+" "+base+of.path {
			at := pathOf(of)
			if method == "GET" && strings.HasPrefix(of.path, "/work/") {
				at += "?id=1&round=0&claim=c"
			}
			return webtest.Call(s.Context(), s.tokens[access.Operator], method, at, bodies[of.id], "Content-Type: "+types[of.id])
		}
	}
	return webtest.Call(s.Context(), s.tokens[access.Operator], method, path, "")
}

// Each route charges the account of its call, and ends with the time of the call: those that a later change adds, too.
func TestEachRouteHasAnAccountAndADeadline(t *testing.T) {
	do := func(context.Context, *wire.Call) (*wire.Answer, error) { return wire.Empty(http.StatusOK), nil }
	s := newSite(t, Options{Interfaces: []wire.Interface{{Prefix: "/other", Routes: []wire.Route{
		{Method: "GET", Path: "/{id}", Need: wire.ToSee, Do: do}, {Method: "POST", Path: "/{id}", Need: wire.ToSee, Do: do, Bulk: true},
	}}}})
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	login := s.do(webtest.Call(t.Context(), "", "POST", "/ui/login", url.Values{"token": {s.tokens[access.Operator]}}.Encode(), "Content-Type: application/x-www-form-urlencoded"))
	cookie, _, _ := strings.Cut(login.Header.Get("Set-Cookie"), ";")
	page := s.do(webtest.Set(webtest.Call(t.Context(), "", "GET", "/ui", ""), "", "Cookie: "+cookie))
	_, after, _ := strings.Cut(page.text, `name="csrf" value="`)
	csrf, _, _ := strings.Cut(after, `"`)
	s.memory = pool.New(usualMemory) // the page above is in the cache of pages
	patterns := slices.Concat(s.mux.Patterns, s.panel.Patterns())
	expect.Compare(t, len(patterns), ">", len(s.routes)+len(withoutToken), "patterns")
	for _, pattern := range patterns {
		if slices.Contains(withoutToken, pattern) {
			continue
		}
		holder := pool.Account{}
		holder.Begin(s.memory, "token operator")
		expect.NoError(t, holder.Take(usualMemory/2))
		got := s.do(s.requestOf(pattern, cookie, csrf))
		expect.Equal(t, got.StatusCode, 429, pattern, "without memory", got.text)
		holder.End()
		s.within = func(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Unix(0, 0))
		}
		got = s.do(s.requestOf(pattern, cookie, csrf))
		expect.Equal(t, got.StatusCode, 503, pattern, "when its time is over", got.text)
		s.within = context.WithTimeout
		expect.Equal(t, s.memory.Taken(), 0, pattern, "bytes were not given back")
	}
}
