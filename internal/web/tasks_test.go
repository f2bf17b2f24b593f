package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

const plain = `{"program":"p","source":"rsync:/p/run.sh","input":"1"}`

func TestOpenTasks(t *testing.T) {
	s := newSite(t, Options{})
	for _, c := range []struct {
		body, kind, want string
	}{
		{plain, "application/json", `{"ids":[1],"fail_on":"stderr"}`},
		{plain, "", `{"ids":[2],"fail_on":"stderr"}`},
		{"[" + plain + "," + plain + "]", "application/json; charset=utf-8", `{"ids":[3,4],"fail_on":"stderr"}`},
		{plain + "\n\n" + plain + "\r\n", "application/x-ndjson", `{"ids":[5,6],"fail_on":"stderr"}`},
		{`{"program":"p","unique":"u"}`, "application/json", `{"ids":[7],"fail_on":"stderr"}`},
		{`[{"program":"p","unique":"u"},` + plain + "]", "application/json", `{"ids":[7,8],"existing":[7],"fail_on":"stderr"}`},
		{`[{"program":"p"},{"program":"p","after":{"places":[0]}}]`, "application/json", `{"ids":[9,10],"fail_on":"stderr"}`},
	} {
		got := s.as(access.Operator, 201, "POST", "/api/v1/tasks", c.body, "Content-Type: "+c.kind, "X-Correlation-Id: call-1")
		expect.Equal(t, strings.TrimSpace(got.text), c.want, c.body)
		expect.Equal(t, got.Header.Get("X-Correlation-Id"), "call-1", c.body)
	}
	task := expect.Result(s.manager.Get(t.Context(), 1)).Value(t)
	expect.Equal(t, task.CorrelationID, "call-1")
	expect.Equal(t, task.Owner, "")
}

func TestRefusedTasks(t *testing.T) {
	s := newSite(t, Options{})
	before := s.world()
	for _, c := range []struct {
		body, kind string
		status     int
		want       string
	}{
		{"", "", 400, ""},
		{"[]", "", 422, "no tasks"},
		{"null", "", 422, "no tasks"},
		{"{}", "", 422, "program"},
		{"{", "", 422, ""},
		{plain + plain, "", 422, ""},
		{plain + "\n{", jsonLines, 422, ""},
		{plain, "text/plain", 415, "text/plain"},
		{plain, "multipart/form-data; boundary=x", 415, ""},
		{`{"program":"p","programme":"p"}`, "", 422, "programme"},
		{`{"program":"p","queue":"a b"}`, "", 422, "queue"},
		{`{"program":"../p"}`, "", 422, "program"},
		{`[` + plain + `,{"program":"p","max_fails":-1}]`, "", 422, "max_fails"},
		{`{"program":"p","after":{"tasks":[99]}}`, "", 422, "99"},
		{strings.Repeat("[", 100_000), "", 422, ""},
		{"[" + strings.Repeat(`{"program":"p"},`, 10_000) + plain + "]", "", 413, "10000"},
		{`{"program":"p","input":"` + strings.Repeat("x", 70<<20) + `"}`, "", 413, "bytes"},
	} {
		got := s.as(access.Operator, c.status, "POST", "/api/v1/tasks", c.body, "Content-Type: "+c.kind)
		p := webtest.Decode[problem](t, got.text)
		expect.Contains(t, p.Detail, c.want, c.body)
		expect.Equal(t, p.Status, c.status, c.body)
		expect.Equal(t, p.Type, "/errors#"+p.Code, c.body)
		expect.NotEqual(t, p.CorrelationID, "", c.body)
		expect.Compare(t, len(got.text), "<=", 2000, c.body)
		expect.Equal(t, got.Header.Get("Content-Type"), "application/problem+json", c.body, got.Header)
	}
	expect.Len(t, s.world(), len(before), "keys after the refused calls")
}

// A call that replicas must confirm has an unknown outcome without them, and has happened once.
func TestOpenWithReplicas(t *testing.T) {
	s := newSite(t, Options{})
	for range 2 {
		got := s.as(access.Operator, 504, "POST", "/api/v1/tasks?replicas=1", plain, "Idempotency-Key: k")
		expect.Contains(t, got.text, `"code":"unknown"`)
	}
	got := s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain, "Idempotency-Key: k")
	expect.Contains(t, got.text, `"ids":[1]`)
	s.as(access.Operator, 422, "POST", "/api/v1/tasks?replicas=11", plain)
}

// A repeated call with the same Idempotency-Key opens nothing, for each token on its own.
func TestIdempotencyKey(t *testing.T) {
	s := newSite(t, Options{})
	for range 3 {
		got := s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain, "Idempotency-Key: k")
		expect.Equal(t, strings.TrimSpace(got.text), `{"ids":[1],"fail_on":"stderr"}`, got.text)
		got = s.as(access.Submitter, 201, "POST", "/api/v1/tasks", plain, "Idempotency-Key: k")
		expect.Equal(t, strings.TrimSpace(got.text), `{"ids":[2],"fail_on":"stderr"}`, got.text)
	}
	s.as(access.Operator, 422, "POST", "/api/v1/tasks", plain, "Idempotency-Key: "+strings.Repeat("k", 201))
	s.as(access.Operator, 409, "POST", "/api/v1/tasks", "["+plain+","+plain+"]", "Idempotency-Key: k")
	s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain, "Idempotency-Key: 0 k")
	other := s.opening(access.Operator, plain, "Idempotency-Key: k")[0]
	expect.Equal(t, other.IDs, []int64{4}, "the same key of another route")
}

// A submitter sees and changes only the tasks that its token has opened.
func TestSubmitter(t *testing.T) {
	s := newSite(t, Options{})
	s.open(testspace.Define("p", "rsync:/p/run.sh", "secret"))
	s.as(access.Submitter, 201, "POST", "/api/v1/tasks", plain)
	before := s.world()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/tasks/1", ""},
		{"GET", "/tasks/1/output", ""},
		{"GET", "/tasks/1/output?stream=result&round=0", ""},
		{"POST", "/tasks/1/cancel", ""},
		{"POST", "/tasks/1/remove", ""},
		{"POST", "/tasks/1/change", `{"changes":{"input":"2"}}`},
		{"POST", "/tasks", `{"program":"p","after":{"tasks":[1]}}`},
		{"POST", "/tasks", `{"program":"p","after_any":{"tasks":[2,1]}}`},
		{"GET", "/tasks/99", ""},
	} {
		got := s.as(access.Submitter, 404, c.method, "/api/v1"+c.path, c.body)
		expect.True(t, !strings.Contains(got.text, "secret"), got.text)
	}
	for _, body := range []string{
		`{"program":"p","owner":"operator"}`, `{"program":"p","campaign":"night"}`, `{"program":"p","unique":"x"}`,
		`{"program":"p","after":{"group":"night"}}`, `[{"program":"p"},{"program":"p","campaign":"submitter"}]`,
	} {
		s.as(access.Submitter, 403, "POST", "/api/v1/tasks", body)
	}
	s.as(access.Submitter, 403, "GET", "/api/v1/groups/night", "")
	s.as(access.Submitter, 403, "GET", "/api/v1/groups?prefix=night", "")
	for _, path := range []string{"", "?prefix=submitter/", "?cursor=AA"} {
		got := s.as(access.Submitter, 200, "GET", "/api/v1/groups"+path, "")
		expect.True(t, !strings.Contains(got.text, "night"), got.text)
	}
	s.as(access.Submitter, 403, "POST", "/api/v1/groups/night/close", "")
	for _, body := range []string{`{"action":"cancel","ids":[1]}`, `{"action":"cancel","filter":{"ids":[1]},"expect":0}`, `{"action":"cancel","filter":{"owner":""},"expect":0}`} {
		got := s.call(s.tokens[access.Submitter], "POST", "/api/v1/tasks/actions", body)
		expect.True(t, !strings.Contains(got.text, `"done":1`), body, got.text)
	}
	expect.Equal(t, fmt.Sprint(s.world()), fmt.Sprint(before), "the calls have changed something")
	for _, query := range []string{"", "?owner=operator", "?ids=1,2", "?states=open"} {
		got := s.as(access.Submitter, 200, "GET", "/api/v1/tasks"+query, "")
		expect.NotContains(t, got.text, "secret", query)
		expect.Contains(t, got.text, `"id":2`, query)
	}
	s.as(access.Submitter, 201, "POST", "/api/v1/tasks", `{"program":"p","campaign":"submitter/a","unique":"submitter/u","after":{"tasks":[2]}}`)
	s.as(access.Submitter, 200, "GET", "/api/v1/groups/submitter%2Fa", "")
	s.as(access.Submitter, 200, "POST", "/api/v1/tasks/2/cancel", "")
}

func TestActions(t *testing.T) {
	s := newSite(t, Options{})
	for range 5 {
		s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	}
	etag := s.as(access.Operator, 200, "GET", "/api/v1/tasks/1", "").Header.Get("ETag")
	s.as(access.Operator, 412, "POST", "/api/v1/tasks/1/change", `{"changes":{"input":"2"}}`, `If-Match: "open-1-0"`)
	s.as(access.Operator, 200, "POST", "/api/v1/tasks/1/change", `{"changes":{"input":"2","timeout":"inf"}}`, "If-Match: "+etag)
	s.as(access.Operator, 412, "POST", "/api/v1/tasks/1/change", `{"changes":{"input":"3"}}`, "If-Match: "+etag)
	s.as(access.Operator, 409, "POST", "/api/v1/tasks/1/change", `{"changes":{"input":"2"}}`)
	s.as(access.Operator, 409, "POST", "/api/v1/tasks/1/archive", "")
	s.as(access.Operator, 200, "POST", "/api/v1/tasks/1/cancel", "{}")
	s.as(access.Operator, 200, "POST", "/api/v1/tasks/1/retry", `{"changes":{"priority":3}}`)
	s.as(access.Operator, 409, "POST", "/api/v1/tasks/1/requeue", `{"elsewhere":true}`)
	task := expect.Result(s.manager.Get(t.Context(), 1)).Value(t)
	expect.Equal(t, task.Input, "2")
	expect.MustTrue(t, task.Priority != nil, task)
	expect.Equal(t, *task.Priority, 3)
	expect.Contains(t, strings.Join(task.Log, "\n"), "token operator: changed: ")

	bulk := func(status int, body, want string) {
		t.Helper()
		expect.Contains(t, s.as(access.Operator, status, "POST", "/api/v1/tasks/actions", body).text, want, body)
	}
	bulk(409, `{"action":"cancel","filter":{"states":["open"]},"expect":4}`, "selects 5 tasks, and not 4")
	bulk(413, `{"action":"cancel","filter":{"ids":[`+strings.Repeat("1,", 10_000)+`1]},"expect":2}`, "10001 ids; at most 10000")
	bulk(200, `{"action":"change","ids":[2,3,99],"changes":{"meta":"m"}}`, `{"done":2,"skipped":1,"reasons":[{"code":"not_found"`)
	s.open(manager.Definition{Program: "p", Source: "rsync:/p/run.sh", Input: "--n three", Meta: `{"n":"three","k":1}`})
	bulk(200, `{"action":"change","ids":[6],"changes":{"input":"--n 4"}}`, `"done":1`)
	expect.Contains(t, s.as(access.Operator, 200, "GET", "/api/v1/tasks/6", "").text, `"input":"--n 4","input_replaced":true`)
	bulk(200, `{"action":"change","ids":[6],"parameters":{"n":5}}`, "a template of the new input is needed")
	bulk(200, `{"action":"change","ids":[6],"parameters":{"m":5},"changes":{"input":"--n {n}"}}`, `"invalid","detail":"change task 6: no parameter m; the parameters are n, k`)
	s.as(access.Operator, 200, "POST", "/api/v1/tasks/6/change", `{"parameters":{"n":5.0},"changes":{"input":"--n {n}"}}`)
	expect.Contains(t, s.as(access.Operator, 200, "GET", "/api/v1/tasks/6", "").text, `"input":"--n 5.0","parameters":{"n":5.0,"k":1}`)
	for query, want := range map[string]string{
		"params=n%3D5.0&params=k%3D1&input=--n": `{"tasks":[{"id":6,`, "params=n%3D5": `{"tasks":[]`, "params=n%3D5.0&params=k%3D2": `{"tasks":[]`, "input=--m": `{"tasks":[]`,
	} {
		expect.Contains(t, s.as(access.Operator, 200, "GET", "/api/v1/tasks?"+query, "").text, want, query)
	}
	s.as(access.Operator, 422, "GET", "/api/v1/tasks?params=n", "")
	bulk(409, `{"action":"cancel","filter":{"params":["n=5.0"],"input":"--n"},"expect":2}`, "selects 1 tasks")
	bulk(200, `{"action":"remove","ids":[6]}`, `"skipped":1`)
	s.as(access.Operator, 200, "POST", "/api/v1/tasks/6/cancel", "{}")
	bulk(200, `{"action":"cancel","filter":{"states":["open"]},"expect":5}`, `{"done":5,"skipped":0}`)
	bulk(200, `{"action":"remove","ids":[1,2]}`, `{"done":2,"skipped":0}`)
	before := s.world()
	for body, want := range map[string]string{
		`{}`:                  "unknown action",
		`{"action":"run"}`:    "unknown action",
		`{"action":"cancel"}`: "either ids or a filter",
		`{"action":"cancel","ids":[3],"filter":{}}`:                                 "either ids or a filter",
		`{"action":"cancel","filter":{}}`:                                           "expect",
		`{"action":"cancel","ids":[3],"expect":1}`:                                  "expect",
		`{"action":"retry","filter":{"sates":["open"]},"expect":1}`:                 "sates",
		`{"action":"retry","filter":{"states":["opened"]},"expect":1}`:              "unknown state",
		`{"action":"change","ids":[3]}`:                                             "without changes",
		`{"action":"cancel","ids":[3],"changes":{"input":"1"}}`:                     "only for change and retry",
		`{"action":"change","ids":[3],"changes":{"group":"g"}}`:                     "group",
		`{"action":"cancel","ids":[3],"parameters":{"a":1}}`:                        "only for change and retry",
		`{"action":"retry","ids":[3],"parameters":["a"]}`:                           "not a JSON object",
		`{"action":"retry","ids":[3],"parameters":{"a":1},"changes":{"meta":"m"}}`:  "the parameters are the meta",
		`{"action":"retry","ids":[3],"parameters":{"a":1},"changes":{"input":"{"}}`: "a { is not closed",
		`{"action":"change","ids":[3],"changes":{"owner":"g"}}`:                     "cannot change",
		`{"action":"retry","ids":[3],"elsewhere":true}`:                             "only for requeue",
		`{"action":"retry","ids":["3"]}`:                                            "",
		`{"action":"retry","ids":[3],"changes":{"max_fails":"many"}}`:               "max_fails",
		`{"action":"retry","ids":[3],"changes":{"max_fails":99999999999}}`:          "max_fails",
	} {
		bulk(422, body, want)
	}
	expect.Equal(t, fmt.Sprint(s.world()), fmt.Sprint(before), "the calls have changed something")
}
