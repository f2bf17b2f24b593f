package web

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
)

// Whatever a call contains, no call fails with 500, every failure is a problem, and a refused call changes nothing.
func FuzzCalls(f *testing.F) {
	s := siteOn(f, redistest.Shared(f), Options{Log: testspace.Silent})
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	methods := []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"}
	roles := access.Roles()
	for i, r := range s.routes {
		f.Add(uint8(i), uint8(i), r.path, bodies[r.id], "application/json", "")
		f.Add(uint8(slices.Index(methods, r.method)), uint8(3), strings.TrimPrefix(pathOf(r), base), bodies[r.id], types[r.id], "")
	}
	for _, path := range []string{
		"/tasks/1?x=1", "/tasks/0", "/tasks/-1", "/tasks/9223372036854775808", "/tasks/1/output?round=999999999&stream=result", "/tasks/1/output?follow=true", "/tasks/1/output?follow=true&round=0&stream=stderr",
		"/events", "/events?types=output", "/events?ids=1&types=output,state", "/events?ids=x", "/events?group=%00", "/events?types=all", "/results?fields=x", "/results?spreadsheet=true&no_output=true",
		"/programs/" + strings.Repeat("f", 64) + "/pin", "/programs/x/pin", "/sweeps", "/sweeps?task=%7B%7D", "/sweeps?task=%7B", "/sweeps?task=%7B%22program%22%3A%22p%22%2C%22campaign%22%3A%22g%22%7D&input=%7B", "/tasks?limit=0", "/tasks?limit=1001", "/tasks?cursor=x",
		"/tasks?since=never", "/tasks?ids=1,,2", "/tasks?exit=256", "/tasks?program=%5B", "/groups/%00", "/groups/a%2Fb", "/workers/%FF/drain", "/limits/" + strings.Repeat("x", 300),
		"/../tasks", "/tasks/%2e%2e/x", "/tasks?states=" + strings.Repeat("open,", 500), "/tasks?failure=zz", "/failures?cursor=AAAA", "?", "/tasks#x",
	} {
		f.Add(uint8(0), uint8(3), path, "", "", "")
		f.Add(uint8(1), uint8(3), path, plain, jsonLines, `"open-0-0"`)
	}
	for _, body := range []string{
		"null", "[null]", "[[]]", `{"a":`, `{"program":null}`, `{"program":"p","after":{"places":[-1]}}`, `{"program":"p","timeout":1e999}`, `{"program":"p","tags":["a","a"]}`, "\xff\xfe", "{}{}", "1e400",
		`[{"program":"p","after":{"places":[0]}}]`, `{"program":"p","end_before":"9999-12-31T23:59:59Z"}`, `{"program":"p","start_after":"inf"}`, `{"action":"cancel","filter":{"states":[]},"expect":-1}`,
		`{"at_most":-1}`, `{"starts":1}`, `{"starts":1,"seconds":1e308}`, `{"queue":"a;b"}`, `{"group":"\u0000"}`, `{"group":"g","failures":-5}`,
		`{"actions":[{"action":"cancel","id":1,"etag":"x"}]}`, `{"actions":[{"action":"cancel","id":1},{"action":"retry","id":1}]}`, `{"require":[{"id":0}]}`, `{"decide":"\u0000"}`, `{"open":{}}`, `{"open":null,"actions":null}`,
		"a\n\"", "a,a\n1,2", "\xff\n1", "a\n" + strings.Repeat("x", 2000), strings.Repeat("a,", 2000) + "b\n", "a;b\n1;2",
	} {
		for i, path := range []string{"/tasks", "/tasks/actions", "/tasks/1/change", "/limits/k", "/pauses/add", "/transactions", "/tasks/stream", "/sweeps?task=%7B%22program%22%3A%22p%22%2C%22campaign%22%3A%22g%22%7D", "/programs"} {
			f.Add(uint8(1+i%4/3), uint8(3), path, body, "application/json", "")
			f.Add(uint8(1), uint8(3), path, body, []string{jsonLines, csvType, "application/gzip"}[i%3], "")
		}
	}
	var world map[string]string // what Redis had after the last call, if it was refused; to read all of it takes longer than most calls
	f.Fuzz(func(t *testing.T, method, role uint8, path, body, kind, match string) {
		r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
		r.Method, r.Host = methods[int(method)%len(methods)], "localhost"
		u, err := r.URL.Parse(base + path)
		if err != nil {
			t.Skip()
		}
		r.URL = u
		webtest.Set(r, s.tokens[access.Role(roles[int(role)%len(roles)])])
		r.Header.Set("Content-Type", kind)
		r.Header.Set("If-Match", match)
		r.Header.Set("Idempotency-Key", match)
		r.Header.Set("Last-Event-ID", match)
		s.TB = t
		before := world
		if before == nil {
			before = s.world()
		}
		got := s.do(r)
		world = nil
		expect.True(t, got.StatusCode < 500, r.Method, path, body, got.StatusCode, got.text)
		if got.StatusCode >= 400 {
			expect.Equal(t, got.Header.Get("Content-Type"), "application/problem+json", r.Method, path, got.StatusCode)
			world = s.world()
			expect.Equal(t, cmp.Diff(before, world), "", r.Method, path, body, got.StatusCode, "but something has changed")
		}
	})
}
