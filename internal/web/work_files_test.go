package web

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func packedIn64(t *testing.T, name string, size int) string {
	t.Helper()
	var p bundle.Packer
	expect.NoError(t, p.Add(name, 0o644, int64(size), strings.NewReader(strings.Repeat("x", size))))
	packed, _, err := p.Bundle()
	expect.NoError(t, err)
	return base64.StdEncoding.EncodeToString([]byte(packed))
}

// A report has the files that its task asks for; otherwise its round fails. Readers of the API see how many there are.
func TestReportsOfFiles(t *testing.T) {
	s := newSite(t, Options{})
	good := packedIn64(t, "out/a", 5)
	for i, c := range []struct{ fetch, more, fails string }{
		{`["out/*"]`, `"files":"` + good + `"`, ""},
		{`["out/*"]`, `"exit":1,"files":"` + good + `"`, "the round ended with exit status 1"},
		{`["out/*"]`, `"result":1`, "fetch: the worker has reported no files; no file matches, or the worker does not know"},
		{`["out/*"]`, `"files":"aGVsbG8="`, "fetch: the files of the report: it is no tar.gz"},
		{`["out/*"]`, `"files":"` + packedIn64(t, "a", 24<<20+1) + `"`, "its files have more bytes than are allowed"},
		{`["out/*"]`, `"files_kept":"6 GB; they are on w"`, ""},
		{`["out/*.csv"]`, `"files":"` + good + `"`, "matches none of the patterns out/*.csv"},
		{`[]`, `"files":"` + good + `"`, "fetch: the worker has reported files, and the task asks for none"},
	} {
		s.TB = t
		s.as(access.Operator, 201, "POST", base+"/tasks", `{"program":"p","fail_on":"exit","fetch":`+c.fetch+`}`)
		w := s.begin(s.tokens[access.Worker], fmt.Sprintf("w%d", i), "")
		one := w.one()
		expect.Equal(t, len(one.Fetch), strings.Count(c.fetch, `"`)/2)
		expect.True(t, w.report(one, `"action":"complete",`+c.more).Accepted, c.more)
		s.settle()
		got := s.task(one.ID)
		packed := expect.Result(s.manager.Files(t.Context(), one.ID, 0)).Value(t)
		shown := fmt.Sprint(s.as(access.Operator, 200, "GET", fmt.Sprintf("%s/tasks/%d", base, one.ID), "").text)
		if c.fails != "" {
			expect.Equal(t, got.State, task.Failed, c.fails)
			expect.Contains(t, got.RoundNumber(0).Error, c.fails)
			expect.Equal(t, packed, "", c.fails)
			continue
		}
		expect.Equal(t, got.State, task.Succeeded)
		if strings.Contains(c.more, "kept") {
			expect.Contains(t, shown, `"files":{"count":0,"bytes":0,"kept":"6 GB; they are on w"}`)
			continue
		}
		expect.Equal(t, base64.StdEncoding.EncodeToString([]byte(packed)), good)
		expect.Contains(t, shown, `"files":{"count":1,"bytes":5}`)
		expect.NotContains(t, shown, good[:20])
	}
}
