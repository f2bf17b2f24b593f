package web

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
)

// docs/http.md lists each route with the roles that may use it, and each kind of problem with its status.
func TestPage(t *testing.T) {
	text := expect.Result(os.ReadFile("../../docs/http.md")).Value(t)
	s := newSite(t, Options{})
	var want []string
	for _, r := range s.routes {
		roles := strings.Join(strings.Fields(allowed[r.id]), ", ")
		want = append(want, "| `"+r.method+" "+r.path+"` | "+r.summary+" | "+roles+" |")
	}
	for _, k := range kinds {
		want = append(want, "| "+strconv.Itoa(k.Status)+" | `"+k.Code+"` | "+k.Text+" |")
	}
	for _, row := range want {
		expect.Contains(t, string(text), row+"\n", "docs/http.md has no row", row)
	}
	expect.Equal(t, strings.Count(string(text), "\n| `")+strings.Count(string(text), "\n| 4")+strings.Count(string(text), "\n| 5"), len(want), "rows of docs/http.md")
}

// The document describes each route, and the properties of a task.
func TestDocument(t *testing.T) {
	s := newSite(t, Options{Version: "1.2.3"})
	document := webtest.Decode[struct {
		OpenAPI string
		Info    struct{ Version string }
		Paths   map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}](t, s.call("", "GET", "/openapi.json", "").text)
	expect.Equal(t, document.OpenAPI, "3.1.0")
	expect.Equal(t, document.Info.Version, "1.2.3")
	for _, r := range s.routes {
		op := document.Paths[base+r.path][strings.ToLower(r.method)]
		expect.Equal(t, op.OperationID, r.id)
		expect.Len(t, op.Security, 1)
	}
	for _, part := range []string{`"max_fails"`, `"correlation_id"`, `"cpu_seconds"`, `"If-Match"`, `"Idempotency-Key"`, `"bearer"`} {
		expect.Contains(t, s.call("", "GET", "/openapi.json", "").text, part, "the document has no")
	}
	expect.Contains(t, string(document.Components.Schemas["ErrorModel"]), "correlation_id", "the document does not describe problems")
}

// The answers have the JSON of docs/tdf.md.
func TestAnswers(t *testing.T) {
	s := newSite(t, Options{})
	for i := range 3 {
		d := testspace.Define("p", "rsync:/p/run.sh", strconv.Itoa(i))
		d.Group = "g"
		s.open(d)
	}
	s.as(access.Operator, 204, "PUT", "/api/v1/limits/a%2Fb", `{"at_most":2,"starts":10,"seconds":1.5}`)
	s.as(access.Operator, 204, "POST", "/api/v1/pauses/add", `{"queue":"q"}`)
	for path, part := range map[string]string{
		"/tasks?limit=2":          `"next":"`,
		"/tasks?states=open":      `"input":"2"`,
		"/tasks?states=failed":    `{"tasks":[]}`,
		"/tasks/2":                `"max_fails":0`,
		"/groups/g":               `"open":3`,
		"/groups":                 `{"groups":[{"name":"g","tasks":{"archived":0,"executed":0,"expired":0,"failed":0,"open":3,`,
		"/groups?prefix=h":        `{"groups":[]}`,
		"/stats":                  `"queues":[{"queue":"default","open":3,"oldest_wait_seconds":`,
		"/limits":                 `[{"key":"a/b","limit":{"at_most":2,"starts":10,"seconds":1.5},"running":0,"waiting":0}]`,
		"/pauses":                 `[{"what":{"queue":"q"},"by":"token operator"`,
		"/workers":                `[]`,
		"/programs":               `[]`,
		"/failures":               `{"groups":[],"suspects":[],"looked":0,"of":0}`,
		"/tasks/1/explain":        `"blocked":true`,
		"/doctor":                 `"severity":"problem"`,
		"/tasks?ids=3,1&limit=10": `"id":3`,
	} {
		expect.Contains(t, s.as(access.Operator, 200, "GET", base+path, "").text, part, path)
	}
	s.as(access.Operator, 404, "GET", base+"/tasks/1/output", "")
	s.as(access.Operator, 404, "GET", base+"/tasks/99/explain", "")
	s.as(access.Operator, 404, "POST", base+"/workers/none/drain", "")
	s.as(access.Operator, 404, "POST", base+"/groups/none/close", "")
	s.as(access.Operator, 204, "POST", base+"/groups/g/close", "")
	s.as(access.Operator, 409, "POST", base+"/tasks", `{"program":"p","campaign":"g"}`)
	s.as(access.Operator, 204, "POST", base+"/groups/g/extend", "")
	s.as(access.Operator, 204, "DELETE", base+"/limits/a%2Fb", "")
	s.as(access.Operator, 204, "POST", base+"/pauses/remove", `{"queue":"q"}`)
	s.as(access.Operator, 422, "POST", base+"/pauses/add", `{}`)
	s.as(access.Operator, 422, "PUT", base+"/limits/k", `{}`)
	s.as(access.Operator, 422, "GET", base+"/tasks?sates=open", "")
}
