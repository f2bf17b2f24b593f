package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/internal/webtest"
)

// probe is an interface whose routes show what web gives to them.
func probe(undone *int) wire.Interface {
	return wire.Interface{Prefix: "/probe", Routes: []wire.Route{
		{Method: "GET", Path: "/see/{id}", Need: wire.ToSee, Do: func(_ context.Context, c *wire.Call) (*wire.Answer, error) {
			return wire.JSON(http.StatusOK, []string{c.PathValue("id"), c.URL.Query().Get("q"), c.Token.Name, c.ID, managing.Of(c.Manager).Name})
		}},
		{Method: "POST", Path: "/work", Need: wire.ToWork, Do: func(_ context.Context, c *wire.Call) (*wire.Answer, error) {
			var v struct{ N int }
			if err := c.Read(&v); err != nil {
				return nil, err
			}
			return wire.JSON(http.StatusAccepted, v.N)
		}},
		{Method: "POST", Path: "/form", Need: wire.ToOpen, Types: []string{"application/x-www-form-urlencoded"}, Do: func(_ context.Context, c *wire.Call) (*wire.Answer, error) {
			return &wire.Answer{Status: http.StatusOK, Type: plainText, Body: c.Body}, nil
		}},
		{Method: "POST", Path: "/fail", Need: wire.ToOperate, Do: func(_ context.Context, c *wire.Call) (*wire.Answer, error) {
			c.Undo = func() { *undone++ }
			return nil, map[string]error{"none": task.ErrNoTask, "taken": task.NewError(task.CodeTaken, "taken"), "failed": context.DeadlineExceeded}[string(c.Body)]
		}},
		{Method: "POST", Path: "/empty", Need: wire.ToOperate, Bulk: true, Do: func(_ context.Context, c *wire.Call) (*wire.Answer, error) {
			c.Undo = func() { *undone++ }
			return wire.JSON(http.StatusAccepted, "")
		}},
	}}
}

// The gate of the API stands before the routes of other systems, too.
func TestInterfaces(t *testing.T) {
	var undone int
	s := newSite(t, Options{Interfaces: []wire.Interface{probe(&undone)}})
	for _, c := range []struct {
		role                       access.Role
		method, path, body, header string
		status                     int
		text                       string
	}{
		{"", "GET", "/probe/see/1", "", "", 401, "unauthorized"},
		{"", "POST", "/probe/work", `{"n":1}`, "", 401, "unauthorized"},
		{access.Worker, "GET", "/probe/see/1", "", "", 403, "may not see tasks"},
		{access.Viewer, "POST", "/probe/work", `{"n":1}`, "", 403, "may not work on tasks"},
		{access.Viewer, "GET", "/probe/see/1", "", "Host: evil", 421, "misdirected"},
		{access.Viewer, "GET", "/probe/see/1", "", "Origin: http://evil", 403, "other_origin"},
		{access.Viewer, "GET", "/probe/see/x%2Fy?q=a", "", "X-Correlation-Id: call-7", 200, `["x/y","a","viewer","call-7","token viewer"]`},
		{access.Viewer, "GET", "/probe/see", "", "", 404, "not_found"},
		{access.Viewer, "DELETE", "/probe/see/1", "", "", 405, "no_method"},
		{access.Worker, "POST", "/probe/work", `{"n":7,"other":1}`, "Content-Type: application/json; charset=utf-8", 202, "7"},
		{access.Worker, "POST", "/probe/work", `{"n":7}`, "Content-Type: text/csv", 415, "unsupported_type"},
		{access.Worker, "POST", "/probe/work", ``, "", 400, "invalid"},
		{access.Worker, "POST", "/probe/work", `{"n":"x"}`, "", 400, "invalid"},
		{access.Worker, "POST", "/probe/work", `{"n":1}{}`, "", 400, "more than one JSON value"},
		{access.Worker, "POST", "/probe/work", strings.Repeat("[", 200), "", 400, "deeper"},
		{access.Worker, "POST", "/probe/work", strings.Repeat(" ", 1<<20) + "1", "", 413, "too_large"},
		{access.Submitter, "POST", "/probe/form", `a=[[`, "Content-Type: application/x-www-form-urlencoded", 200, "a=[["},
		{access.Submitter, "POST", "/probe/form", `{}`, "Content-Type: application/json", 415, "unsupported_type"},
		{access.Operator, "POST", "/probe/fail", "none", "", 404, "not_found"},
		{access.Operator, "POST", "/probe/fail", "taken", "", 409, "taken"},
		{access.Operator, "POST", "/probe/fail", "failed", "", 503, "problem"},
		{access.Operator, "POST", "/probe/empty", "1" + strings.Repeat(" ", 2<<20), "", 202, ""},
	} {
		before := undone
		headers := []string{}
		if c.header != "" && !strings.HasPrefix(c.header, "Host") {
			headers = append(headers, c.header)
		}
		r := webtest.Call(t.Context(), s.tokens[c.role], c.method, c.path, c.body, headers...)
		if c.header == "Host: evil" {
			r.Host = "evil"
		}
		got := s.do(r)
		name := string(c.role) + " " + c.method + " " + c.path + " " + c.body[:min(len(c.body), 20)]
		expect.Equal(t, got.StatusCode, c.status, name, c.text)
		expect.Contains(t, got.text+got.Header.Get("Content-Type"), c.text, name, c.status)
		expect.NotEqual(t, got.Header.Get("X-Correlation-Id"), "", name, c.status, c.text)
		want := strings.HasSuffix(c.path, "/fail")
		if want != (undone > before) {
			expect.NotEqual(t, c.role, access.Operator, name)
		}
	}
	expect.Equal(t, s.memory.Taken(), 0, "memory was not given back")
}
