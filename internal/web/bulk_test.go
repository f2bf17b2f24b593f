package web

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
)

// opening calls POST /tasks/stream, and returns the lines of the answer.
func (s *site) opening(role access.Role, body string, headers ...string) (all []linesDone) {
	s.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, webtest.Call(s.Context(), s.tokens[role], http.MethodPost, base+"/tasks/stream", body, append(headers, "Content-Type: "+jsonLines)...))
	for line := range strings.Lines(w.Body.String()) {
		all = append(all, webtest.Decode[linesDone](s, line))
	}
	return all
}

func TestOpenLines(t *testing.T) {
	s := newSite(t, Options{})
	all := s.opening(access.Submitter, strings.Repeat(plain+"\n\n", 600)+`{"program":"p","unique":"submitter/u"}`)
	last, ids := all[len(all)-1], 0
	for _, line := range all {
		ids += len(line.IDs)
	}
	expect.Len(t, all, 5, ids)
	expect.True(t, last.Done, len(all), "lines", ids, "ids", last)
	expect.Equal(t, last.Line, 1201, ids)
	expect.Equal(t, last.Opened, 601, ids)
	expect.Equal(t, ids, 601)
	one := expect.Result(s.manager.Get(t.Context(), 601)).Value(t)
	expect.Equal(t, one.Owner, "submitter")
	expect.NotEqual(t, one.CorrelationID, "")
	all = s.opening(access.Submitter, `{"program":"p","unique":"submitter/u"}`)
	expect.MustLen(t, all, 2)
	expect.MustEqual(t, fmt.Sprint(all[0].Existing), "[601]")
	expect.MustEqual(t, all[1].Opened, 0)
	expect.True(t, all[1].Done, all)
	for range 3 { // repeated with a key
		all = s.opening(access.Operator, strings.Repeat(plain+"\n", 300), "Idempotency-Key: k")
		expect.MustLen(t, all, 3)
		expect.MustEqual(t, all[0].IDs[0], 602)
		expect.Equal(t, all[2].Opened, 300)
	}
	all = s.opening(access.Operator, "")
	expect.MustLen(t, all, 1)
	expect.True(t, all[0].Done, all)
}

// A line that cannot be opened ends the call. The tasks of the lines before it are opened.
func TestInvalidLines(t *testing.T) {
	s := newSite(t, Options{})
	for i, c := range []struct {
		line, code string
	}{
		{"{", "invalid"},
		{plain + plain, "invalid"},
		{`{"programme":"p"}`, "invalid"},
		{`{"program":"../p"}`, "invalid"},
		{`{"program":"p","max_fails":-1}`, "invalid"},
		{`{"program":"p","campaign":"night"}`, "forbidden"},
		{`{"program":"p","owner":"operator"}`, "forbidden"},
		{`{"program":"p","after":{"tasks":[99999]}}`, "not_found"},
		{`{"program":"p","after":{"places":[0]}}`, "invalid"},
		{strings.Repeat("[", 100_000), "invalid"},
		{strings.Repeat(" ", linesBytes) + plain, "too_large"},
		{`{"program":"p","input":"` + strings.Repeat("x", 900_000) + `"}`, "invalid"},
	} {
		all := s.opening(access.Submitter, plain+"\n"+plain+"\n"+c.line+"\n"+plain+"\n")
		last := all[len(all)-1]
		if last.Error == nil || last.Done || last.Error.Code != c.code || last.Line != 3 {
			t.Errorf("%.50s: %+v %+v", c.line, last, last.Error)
			continue
		}
		expect.Equal(t, last.Opened, 2, c.line)
		expect.Len(t, all, 2, c.line)
		expect.NotContains(t, last.Error.Detail, "xxxx", "case", i)
		expect.Compare(t, len(last.Error.Detail), "<=", 500, "case", i)
	}
	s.as(access.Submitter, 422, "POST", base+"/tasks/stream", "{\n"+plain, "Content-Type: "+jsonLines)
	s.as(access.Submitter, 415, "POST", base+"/tasks/stream", plain, "Content-Type: application/json")
}

// The answer has a line for what has arrived, while the body still grows.
func TestLinesBothWays(t *testing.T) {
	s := newSite(t, Options{})
	server := s.serve()
	in, out := io.Pipe()
	r := expect.Result(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+base+"/tasks/stream", in)).Value(t)
	webtest.Set(r, s.tokens[access.Operator], "Content-Type: "+jsonLines)
	go io.WriteString(out, plain+"\n")
	got := expect.Result(server.Client().Do(r)).Value(t)
	defer got.Body.Close()
	answer := bufio.NewScanner(got.Body)
	for i := range 5 {
		expect.MustTrue(t, answer.Scan(), "line", i)
		expect.MustEqual(t, webtest.Decode[linesDone](t, answer.Text()).Opened, i+1, "line", i)
		if i < 4 {
			expect.Result(io.WriteString(out, plain+"\n")).OK(t)
		}
	}
	expect.NoError(t, out.Close())
	expect.True(t, answer.Scan(), "the last line")
	expect.True(t, webtest.Decode[linesDone](t, answer.Text()).Done, "the last line")
}

func sweepPath(one, input string, more string) string {
	return base + "/sweeps?task=" + url.QueryEscape(one) + "&input=" + url.QueryEscape(input) + more
}

func TestSweeps(t *testing.T) {
	s := newSite(t, Options{})
	path := sweepPath(`{"program":"p","source":"rsync:/p/run.sh","campaign":"submitter/s","max_fails":2}`, "--rate {rate} {mode}", "")
	got := s.as(access.Submitter, 200, "POST", path, "rate,mode\n0.1,a b\n0.2,c\n0.2,c\n", "Content-Type: text/csv; charset=utf-8")
	expect.Equal(t, strings.TrimSpace(got.text), `{"campaign":"submitter/s","opened":3,"known":0,"repeated":1,"fail_on":"stderr"}`, got.text)
	one := expect.Result(s.manager.Get(t.Context(), 1)).Value(t)
	expect.Equal(t, one.Input, "--rate 0.1 'a b'")
	expect.Equal(t, one.Meta, `{"rate":0.1,"mode":"a b"}`)
	expect.MustTrue(t, one.MaxFails != nil, one)
	expect.Equal(t, *one.MaxFails, 2)
	expect.Equal(t, one.Owner, "submitter")
	expect.Contains(t, s.as(access.Submitter, 200, "GET", base+"/groups/submitter%2Fs", "").text, `"closed":true`)
	s.as(access.Submitter, 409, "POST", path, "rate,mode\n1,2\n", "Content-Type: text/csv")
	got = s.as(access.Submitter, 200, "POST", path+"&extend=true", `{"rate":0.1,"mode":"a b"}`+"\n"+`{"rate":7,"mode":"x"}`, "Content-Type: "+jsonLines)
	expect.Equal(t, strings.TrimSpace(got.text), `{"campaign":"submitter/s","opened":1,"known":1,"repeated":0,"fail_on":"stderr"}`, got.text)
	var rows strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&rows, "%d\n", i)
	}
	got = s.as(access.Operator, 200, "POST", sweepPath(`{"program":"p","campaign":"t"}`, "", ""), "a\n"+rows.String(), "Content-Type: text/csv")
	expect.Contains(t, got.text, `"opened":1000`)
}

// A sweep of a function has the task in the first line, because the function may be long. The input is the same for all
// tasks, also if parameters change or the function is replaced.
func TestSweepsOfFunctions(t *testing.T) {
	s := newSite(t, Options{})
	input := base64.StdEncoding.EncodeToString([]byte("#!tdf.call 3.11 work:fit\n" + strings.Repeat("x", 90_000)))
	first := func(more string) string {
		return `{"program":"tdf.call","campaign":"c","input":"` + input + `","input_encoding":"base64"` + more + "}\n"
	}
	open := func(status int, query, body string) string {
		return s.as(access.Operator, status, "POST", base+"/sweeps?"+query, body, "Content-Type: "+jsonLines).text
	}
	expect.Contains(t, open(200, "", first("")+"{\"rate\":1}\n{\"rate\":2}\n"), `"opened":2,"known":0`)
	expect.Contains(t, open(200, "extend=true", first("")+"{\"rate\":1}\n{\"rate\":3}\n"), `"opened":1,"known":1`)
	s.as(access.Operator, 200, "POST", base+"/tasks/1/change", `{"parameters":{"rate":7}}`)
	other := base64.StdEncoding.EncodeToString([]byte("#!tdf.call 3.11 work:fit\nother"))
	s.as(access.Operator, 200, "POST", base+"/tasks/2/change", `{"changes":{"input":"`+other+`"}}`)
	for id, want := range []struct{ input, meta string }{{input, `{"rate":7}`}, {other, `{"rate":2}`}, {input, `{"rate":3}`}} {
		one := expect.Result(s.manager.Get(t.Context(), int64(id+1))).Value(t)
		expect.Equal(t, one.Input, want.input, one.ID)
		expect.Equal(t, one.Meta, want.meta, one.ID)
		expect.True(t, !one.InputReplaced, "input replaced", one.ID)
	}
	before := fmt.Sprint(s.world())
	for body, want := range map[string]string{
		"\n":                                  "task",
		"{\n":                                 "task",
		first(""):                             "no rows",
		first("") + "{\"rate\":1}\n{":         "line 3",
		first(`,"meta":"m"`) + "{\"rate\":1}": "meta",
		first(`,"tags":["`+strings.Repeat("x", maxTask)+`"]`) + "{\"rate\":1}":        "task",
		`{"program":"p","campaign":"d","input":"words"}` + "\n{\"rate\":1}":           "input",
		`{"program":"p","campaign":"d","input_encoding":"base64"}` + "\n{\"rate\":1}": "base64",
	} {
		expect.Contains(t, open(422, "extend=true", body), want, len(body))
	}
	expect.Contains(t, open(422, "extend=true&input={rate}", first("")+"{\"rate\":1}"), "input")
	expect.Equal(t, fmt.Sprint(s.world()), before, "the calls have changed something")
}

// Several extensions of a campaign at the same time, and the first opening of it, open each point once.
func TestExtensionsBesideEachOther(t *testing.T) {
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprint("first opening ", first), func(t *testing.T) { testExtensions(t, newSite(t, Options{}), first) })
	}
}

func testExtensions(t *testing.T, s *site, first bool) {
	var rows strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&rows, i%1500) // 500 points occur twice
	}
	var all sync.WaitGroup
	var opened atomic.Int64
	open := func(more string) {
		all.Go(func() {
			path := sweepPath(`{"program":"p","campaign":"c"}`, "", more)
			got := webtest.Decode[swept](t, s.as(access.Operator, 200, "POST", path, "a\n"+rows.String(), "Content-Type: text/csv").text)
			opened.Add(got.Opened)
			expect.Equal(t, got.Opened+got.Known, 2000)
		})
	}
	counts := func() task.Counts { return expect.Result(s.manager.Counts(t.Context(), "c")).Value(t) }
	if first {
		open("")
		expect.Eventually(t, "the opening has begun", func() bool { return counts().Total() > 0 })
	}
	for range 4 {
		open("&extend=true")
	}
	all.Wait()
	expect.Equal(t, opened.Load(), 2000)
	expect.Equal(t, counts()[task.Open], 2000)
}

func TestRefusedSweeps(t *testing.T) {
	s := newSite(t, Options{Memory: 16 << 20})
	const one = `{"program":"p","campaign":"submitter/s"}`
	before := fmt.Sprint(s.world())
	for _, c := range []struct {
		task, input, body string
		status            int
		want              string
	}{
		{`{"program":"p"}`, "", "a\n1\n", 422, "campaign"},
		{`{`, "", "a\n1\n", 422, "task"},
		{`{"program":"p","campaign":"s"}`, "", "a\n1\n", 403, ""},
		{`{"program":"p","campaign":"submitter/s","meta":"m"}`, "", "a\n1\n", 422, "meta"},
		{`{"campaign":"submitter/s"}`, "", "a\n1\n", 422, "program"},
		{one, "{b}", "a\n1\n", 422, "line 2"},
		{one, "{", "a\n1\n", 422, "input"},
		{one, "", "a\n1\n2,3\n", 422, "line 3"},
		{one, "", "a\n1\n\"2\n", 422, "quote"},
		{one, "", "a\n", 422, "no rows"},
		{one, "", "\xff\n1\n", 422, "UTF-8"},
		{one, "", "a\n" + strings.Repeat("x", 2<<20), 422, "bytes"},
		{one, "", strings.Repeat("a,", 400_000) + "b\n", 422, "name"},
		{one, "", "a\n" + strings.Repeat("1\n", 90_000), 413, "memory"},
	} {
		got := s.as(access.Submitter, c.status, "POST", sweepPath(c.task, c.input, ""), c.body, "Content-Type: text/csv")
		expect.Contains(t, got.text, c.want, c.task, c.input, c.body)
		expect.Compare(t, len(got.text), "<=", 2000, c.task, c.input, c.body)
	}
	s.as(access.Submitter, 415, "POST", sweepPath(one, "", ""), "a\n1\n", "Content-Type: application/json")
	s.as(access.Submitter, 422, "POST", base+"/sweeps", "a\n1\n", "Content-Type: text/csv")
	expect.Equal(t, fmt.Sprint(s.world()), before, "the calls have changed something")
}

func TestResults(t *testing.T) {
	s := newSite(t, Options{})
	h := s.hand()
	s.as(access.Submitter, 200, "POST", sweepPath(`{"program":"p","source":"rsync:/p/run.sh","campaign":"submitter/s"}`, "", ""), "rate\n0.1\n=2\n", "Content-Type: text/csv")
	for range 2 {
		c := h.claim()
		h.end(c, rules.Result{Exit: "0", Output: `{"loss":` + fmt.Sprint(c.Task.ID) + `}`})
	}
	s.open(testspace.Define("q", "rsync:/q/run.sh", "secret"))
	for role, n := range map[access.Role]int{access.Submitter: 3, access.Viewer: 4} {
		got := s.as(role, 200, "GET", base+"/results", "")
		expect.Equal(t, strings.Count(got.text, "\n"), n, role)
		expect.True(t, strings.HasPrefix(got.text, "id,campaign,program,input,state,outcome,round,run,rate,"), role, got.text)
		expect.True(t, strings.HasPrefix(got.Header.Get("Content-Type"), csvType), role, got.text)
	}
	got := s.as(access.Viewer, 200, "GET", base+"/results?group=submitter/s&states=succeeded&spreadsheet=true&no_output=true", "")
	expect.Contains(t, got.text, ",'=2,")
	expect.NotContains(t, got.text, "output_whole")
	expect.Contains(t, got.text, "loss")
	got = s.as(access.Viewer, 200, "GET", base+"/results?group=submitter/s", "", "Accept: "+jsonLines)
	expect.Equal(t, strings.Count(got.text, "\n"), 2)
	expect.Contains(t, got.text, `"parameters":{"rate":0.1}`)
	expect.Contains(t, got.text, `"output":"{\"loss\":1}"`)
	s.as(access.Viewer, 422, "GET", base+"/results?exit=256", "")
	s.as(access.Viewer, 422, "GET", base+"/results?fields=all", "")
}

// A countedBody counts the bytes that are read.
type countedBody struct {
	io.ReadCloser
	read *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// A client that sends a line byte by byte does not hold its place, because a line has one deadline. The tasks of the lines before it are open.
func TestSlowLines(t *testing.T) {
	s := newSite(t, Options{})
	read := new(atomic.Int64)
	d := &webtest.Deadlines{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = countedBody{r.Body, read}
		s.ServeHTTP(w, r)
	})}
	server := httptest.NewServer(d)
	defer server.Close()
	in, out := io.Pipe()
	defer out.Close()
	r := expect.Result(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+base+"/tasks/stream", in)).Value(t)
	webtest.Set(r, s.tokens[access.Operator], "Content-Type: "+jsonLines)
	go io.WriteString(out, plain+"\n{")
	got := expect.Result(server.Client().Do(r)).Value(t)
	defer got.Body.Close()
	answer := bufio.NewScanner(got.Body)
	expect.True(t, answer.Scan(), "a first line")
	expect.Equal(t, webtest.Decode[linesDone](t, answer.Text()).Opened, 1, "opened")
	for range 100 {
		expect.Result(io.WriteString(out, " ")).OK(t)
	}
	// The kernel resets a connection that ends with bytes that nobody has read, and the client may lose the answer.
	expect.Eventually(t, "all is read", func() bool { return read.Load() == int64(len(plain+"\n{")+100) })
	d.Reads.Pass()
	expect.True(t, answer.Scan(), "a last line")
	last := webtest.Decode[linesDone](t, answer.Text())
	expect.MustTrue(t, last.Error != nil, last)
	expect.Equal(t, last.Error.Code, tooSlow)
	expect.Equal(t, last.Line, 2)
	expect.Equal(t, last.Opened, 1)
	expect.Len(t, d.Reads.Left(), 3, "the deadline of the gate, and those of lines")
	for _, left := range d.Reads.Left() {
		expect.Compare(t, left, "<=", lineTime)
	}
}
