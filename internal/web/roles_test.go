package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
)

// Which roles may use a route is written twice: in the table of routes, and here.
var allowed = map[string]string{
	"open-tasks": "submitter operator", "list-tasks": "viewer submitter operator", "get-task": "viewer submitter operator",
	"get-output": "viewer submitter operator", "act-on-tasks": "submitter operator", "act-on-task": "submitter operator",
	"get-stats": "viewer operator", "diagnose": "viewer operator", "list-failures": "viewer operator", "explain-task": "viewer operator",
	"list-programs": "viewer operator", "list-groups": "viewer submitter operator", "get-group": "viewer submitter operator", "close-group": "submitter operator",
	"extend-group": "submitter operator", "list-workers": "viewer operator", "drain-worker": "operator", "resume-worker": "operator",
	"list-limits": "viewer operator", "set-limit": "operator", "remove-limit": "operator", "list-pauses": "viewer operator",
	"pause": "operator", "resume": "operator",
	"register-worker": "worker operator", "sign-off-worker": "worker operator", "send-heartbeat": "worker operator", "claim-tasks": "worker operator",
	"renew-claims": "worker operator", "report-rounds": "worker operator", "get-dependencies": "worker operator", "get-program": "worker operator",
	"locate-blobs": "worker submitter operator", "get-blob": "viewer worker submitter operator", "store-blob": "worker submitter operator",
	"store-program": "submitter operator", "pin-program": "operator", "unpin-program": "operator", "remove-program": "operator",
	"get-results": "viewer submitter operator", "commit-transaction": "submitter operator", "open-sweep": "submitter operator",
	"open-stream": "submitter operator", "stream-events": "viewer submitter operator", "list-queues": "viewer operator",
}

// bodies have a valid body for each route that needs one.
var bodies = map[string]string{
	"register-worker": `{"name":"w"}`, "renew-claims": "[]", "report-rounds": "[]",
	"open-tasks": plain, "act-on-tasks": `{"action":"cancel","ids":[1]}`, "set-limit": `{"at_most":1}`, "pause": `{"namespace":true}`, "resume": `{"namespace":true}`,
	"commit-transaction": `{"open":[` + plain + `],"actions":[{"action":"cancel","id":1}]}`, "open-sweep": "a,b\n1,2\n", "open-stream": plain + "\n" + plain,
	"store-program": "no archive", "store-blob": "x",
}

// types have the Content-Type of each body that is not JSON.
var types = map[string]string{"open-sweep": csvType, "open-stream": jsonLines, "store-program": "application/x-tar", "store-blob": octets}

// pathOf returns a path of a route, with parameters that exist.
func pathOf(r route) string {
	path := strings.NewReplacer("{id}", "1", "{name}", "n", "{key}", "k", "{action}", "cancel", "{sha256}", strings.Repeat("0", 64), "{session}", "w.AAAAAAAAAAAAAAAAAAAAAAAAAA").Replace(r.path)
	if r.id == "open-sweep" {
		path += "?task=" + url.QueryEscape(`{"program":"p","campaign":"submitter/sweep"}`) + "&extend=true"
	}
	if r.id == "store-blob" {
		path += "?bytes=1"
	}
	return base + path
}

// Each route lets only some roles pass. Every other call changes nothing: without a token, with a wrong or revoked one, and with another role.
func TestEachRouteAndRole(t *testing.T) {
	s := newSite(t, Options{})
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	revoked := expect.Result(s.admin.AddToken(t.Context(), access.Token{Name: "revoked", Role: access.Operator})).Value(t)
	expect.NoError(t, s.admin.RemoveToken(t.Context(), "revoked"))
	for _, r := range s.routes {
		may, listed := allowed[r.id]
		expect.True(t, listed, "the route", r.id, "has no row in this test")
		path, kind := pathOf(r), "Content-Type: "+types[r.id]
		before := s.world()
		for _, token := range []string{"", "x", "tdf_operator_", s.tokens[access.Operator] + "A", strings.ToLower(s.tokens[access.Operator]), revoked} {
			got := s.call(token, r.method, path, bodies[r.id], kind)
			expect.Equal(t, got.StatusCode, http.StatusUnauthorized, token)
			expect.NotEqual(t, got.Header.Get("WWW-Authenticate"), "", token)
		}
		for _, role := range access.Roles() {
			if !strings.Contains(may, role) {
				s.as(access.Role(role), http.StatusForbidden, r.method, path, bodies[r.id], kind)
			}
		}
		expect.Equal(t, cmp.Diff(before, s.world()), "", "refused calls of", r.id, "have changed something")
		for role := range strings.FieldsSeq(may) {
			got := s.call(s.tokens[access.Role(role)], r.method, path, bodies[r.id], kind)
			submittersOwn := role == "submitter" && strings.Contains(got.text, "begin with submitter/")
			expect.NotEqual(t, got.StatusCode, 401, role)
			if got.StatusCode == 403 {
				expect.True(t, submittersOwn, r.id, "as", role, got.StatusCode, got.text)
			}
			expect.Compare(t, got.StatusCode, "<", 500, role)
		}
	}
	expect.Len(t, s.routes, len(allowed), "routes, with a row for each")
}

// A token for some queues opens only tasks of these queues, and cannot move tasks to others.
func TestQueuesOfToken(t *testing.T) {
	s := newSite(t, Options{})
	text := expect.Result(s.admin.AddToken(t.Context(), access.Token{Name: "gpu", Role: access.Submitter, Queues: []string{"gpu", "slow"}})).Value(t)
	for body, status := range map[string]int{
		`{"program":"p"}`: 201, `{"program":"p","queue":"slow"}`: 201, `{"program":"p","queue":"default"}`: 403, `{"program":"p","queue":"crawl"}`: 403,
	} {
		got := s.call(text, "POST", "/api/v1/tasks", body)
		expect.Equal(t, got.StatusCode, status, body, got.text)
	}
	for queue, status := range map[string]int{"": 403, "crawl": 403, "slow": 200} {
		got := s.call(text, "POST", "/api/v1/tasks/actions", `{"action":"change","ids":[1],"changes":{"queue":"`+queue+`"}}`)
		expect.Equal(t, got.StatusCode, status, "to queue", queue, got.text)
	}
}
