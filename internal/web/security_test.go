package web

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
)

// A client cannot write lines into the log, nor members into a line.
func TestLogLines(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		var log testlog.Buffer
		handler := slog.Handler(slog.NewTextHandler(&log, nil))
		if format == "json" {
			handler = slog.NewJSONHandler(&log, nil)
		}
		s := siteOn(t, redistest.Shared(t), Options{Log: slog.New(handler)})
		calls := 0
		for _, evil := range []string{"\nlevel=ERROR msg=forged", "\r\n", "\" token=operator", `","token":"operator`, "\x1b[2J", "\u2028", "\x00", strings.Repeat("x", 100_000)} {
			r := httptest.NewRequest("GET", "http://localhost/", nil)
			r.URL.Path = "/api/v1/" + evil
			r.Method = "GET" + evil
			r.Header["X-Correlation-Id"] = []string{evil}
			r.Header.Set("Authorization", "Bearer tdf_"+evil+"_A")
			s.do(r)
			calls++
		}
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		expect.Len(t, lines, calls, format, "lines of calls")
		for _, line := range lines {
			expect.True(t, !strings.ContainsAny(line, "\r\x00\x1b\u2028"), format, line)
			expect.Compare(t, len(line), "<=", 5000, format, line)
			if strings.Contains(line, "level=ERROR msg=forged") {
				expect.Contains(t, line, `"`, format)
			}
			if format == "json" {
				expect.Equal[any](t, webtest.Decode[map[string]any](t, line)["token"], "", format, "the token in", line)
			}
			if format == "text" {
				expect.Contains(t, line, ` token="" `, format)
			}
			if format == "json" {
				expect.True(t, json.Valid([]byte(line)), "not JSON", line)
			}
		}
	}
}

// Paths that mean another path, and names that look like paths, reach nothing else.
func TestPathTricks(t *testing.T) {
	s := newSite(t, Options{})
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	before := s.world()
	for _, path := range []string{
		"/healthz/../api/v1/tasks", "/api/v1/../v1/tasks", "/api//v1/tasks", "/api/v1/tasks/", "/api/v1/./tasks", "/api/v1/tasks/1/../../stats", "/API/v1/tasks",
		"/api%2Fv1/tasks", "/%61pi/v1/../v1/tasks", "/api/v1/%2e%2e/v1/tasks", "/api/v1/tasks%00", "/api/v1/tasks;x=1", "/docs/%2e%2e/api/v1/tasks", "/errors/", "/openapi.json/..",
	} {
		for _, token := range []string{"", s.tokens[access.Worker], s.tokens[access.Viewer]} {
			got := s.call(token, "GET", path, "")
			expect.Compare(t, got.StatusCode, ">=", 400, path)
			expect.NotContains(t, got.text, `"tasks"`, path)
		}
	}
	for _, path := range []string{"/groups/..%2F..%2Ftask%3A1/close", "/groups/%00/close", "/groups/a%0Ab/close", "/limits/..%2Fx%00", "/workers/..%2F1/drain", "/tasks/1%2F..%2F2/cancel", "/tasks/0x1/cancel"} {
		method := "POST"
		if strings.HasPrefix(path, "/limits") {
			method = "DELETE"
		}
		got := s.call(s.tokens[access.Operator], method, base+path, "")
		expect.Compare(t, got.StatusCode, ">=", 400, path)
		expect.Compare(t, got.StatusCode, "<", 500, path)
	}
	expect.Equal(t, cmp.Diff(before, s.world()), "", "something has changed")
}

// A call has one token, which is in one header.
func TestWhereTokensAre(t *testing.T) {
	s := newSite(t, Options{})
	token := s.tokens[access.Operator]
	for _, header := range []string{"Authorization: bearer " + token, "Authorization: BEARER " + token} {
		expect.Equal(t, s.call("", "GET", "/api/v1/stats", "", header).StatusCode, 200, header)
	}
	for _, header := range []string{
		"Authorization: " + token, "Authorization: Bearer", "Authorization: Bearer  " + token, "Authorization: Bearer " + token + " ", "Authorization: Bearer " + token + "," + token,
		"Authorization: Basic " + token, "Cookie: token=" + token, "X-Api-Key: " + token, "Proxy-Authorization: Bearer " + token,
	} {
		got := s.call("", "GET", "/api/v1/stats", "", header)
		expect.Equal(t, got.StatusCode, 401, header)
		expect.NotContains(t, got.text, token, header)
	}
	for _, path := range []string{"/api/v1/stats?token=" + token, "/api/v1/stats?access_token=" + token} {
		expect.Equal(t, s.call("", "GET", path, "").StatusCode, 401, "in the address")
	}
	r := httptest.NewRequest("GET", "http://localhost/api/v1/stats", nil)
	r.Header["Authorization"] = []string{"Bearer " + token, "Bearer " + token}
	expect.Equal(t, s.do(r).StatusCode, 401, "twice")
}
