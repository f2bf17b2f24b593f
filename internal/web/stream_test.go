package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A hand does the work of a worker and of a server in a test.
type hand struct {
	testing.TB
	*redisstate.Store
}

func (s *site) hand() hand { return hand{s.TB, testspace.Connect(s.TB, s.cfg)} }

// claim claims a task.
func (h hand) claim() redisstate.Claim {
	h.Helper()
	got := expect.Result(h.Claim(h.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 3600})).Value(h)
	expect.MustLen(h, got.Claims, 1)
	return got.Claims[0]
}

// report stores a report about a running task.
func (h hand) report(c redisstate.Claim, r redisstate.LiveReport) {
	h.Helper()
	expect.Result(h.Renew(h.Context(), 3600, redisstate.LeaseRenewal{ID: c.Task.ID, Round: c.Task.Round, Claim: c.ID, Report: r})).OK(h)
}

// end reports a result, and settles the task.
func (h hand) end(c redisstate.Claim, r rules.Result) {
	h.Helper()
	testspace.End(h, h.Store, c, r)
}

// serve starts a server for the site, which ends with the test.
func (s *site) serve() *httptest.Server {
	server := httptest.NewServer(s)
	s.Cleanup(server.Close)
	return server
}

// get begins a call with the token of a role, and returns its answer.
func (s *site) get(ctx context.Context, server *httptest.Server, role access.Role, path string, headers ...string) *http.Response {
	s.Helper()
	r := expect.Result(http.NewRequestWithContext(ctx, http.MethodGet, server.URL+base+path, nil)).Value(s)
	got := expect.Result(server.Client().Do(webtest.Set(r, s.tokens[role], headers...))).Value(s)
	s.Cleanup(func() { got.Body.Close() })
	return got
}

// A list as JSON Lines has all pages of a query, and only the tasks that the caller may see.
func TestListAsJSONLines(t *testing.T) {
	s := newSite(t, Options{})
	var all []task.Definition
	for i := range 1200 {
		all = append(all, testspace.Define("p", "rsync:/p/run.sh", strconv.Itoa(i)))
	}
	s.open(all...)
	s.as(access.Submitter, 201, "POST", "/api/v1/tasks", plain)
	for role, n := range map[access.Role]int{access.Operator: 1201, access.Viewer: 1201, access.Submitter: 1} {
		got := s.as(role, 200, "GET", "/api/v1/tasks?states=open", "", "Accept: application/x-ndjson, application/json;q=0.5")
		seen := map[int64]bool{}
		for line := range strings.Lines(got.text) {
			seen[webtest.Decode[struct{ ID int64 }](t, line).ID] = true
		}
		expect.Len(t, seen, n, role)
		expect.Equal(t, got.Header.Get("Content-Type"), jsonLines, role)
	}
	for path, status := range map[string]int{"/tasks?states=opened": 422, "/tasks?exit=256": 422, "/tasks?states=failed": 200} {
		got := s.as(access.Operator, status, "GET", base+path, "", "Accept: "+jsonLines)
		kind := got.Header.Get("Content-Type")
		expect.Equal(t, status == 422, kind == "application/problem+json", path, kind)
	}
	expect.Equal(t, s.as(access.Operator, 200, "HEAD", "/api/v1/tasks", "", "Accept: "+jsonLines).text, "")
}

// A followed output has each part as it arrives, and ends with the round.
func TestFollowOutput(t *testing.T) {
	s := newSite(t, Options{})
	server, h := s.serve(), s.hand()
	s.as(access.Submitter, 201, "POST", "/api/v1/tasks", plain)
	got := s.get(t.Context(), server, access.Submitter, "/tasks/1/output?follow=true")
	begun := h.claim()
	text := ""
	for _, more := range []string{"one\n", "two\n", "three\n"} {
		text += more
		h.report(begun, redisstate.LiveReport{Tail: testspace.Tail(text)})
		part := make([]byte, len(more))
		expect.Result(io.ReadFull(got.Body, part)).OK(t)
		expect.MustEqual(t, string(part), more)
	}
	h.end(begun, rules.Result{Output: text + "four", Error: "E", Exit: "0"})
	expect.Equal(t, string(expect.Result(io.ReadAll(got.Body)).Value(t)), "fourE")
	expect.Equal(t, got.Trailer.Get("X-Output-Incomplete"), "")
	again := s.get(t.Context(), server, access.Operator, "/tasks/1/output?follow=true")
	expect.Equal(t, string(expect.Result(io.ReadAll(again.Body)).Value(t)), text+"fourE")
	s.open(testspace.Define("p", "rsync:/p/run.sh", "2"))
	s.as(access.Submitter, 404, "GET", "/api/v1/tasks/2/output?follow=true", "")
	s.as(access.Operator, 404, "GET", "/api/v1/tasks/3/output?follow=true", "")
	s.as(access.Operator, 404, "GET", "/api/v1/tasks/2/output?follow=true&round=7", "")
	for _, stream := range []string{"result", "stderr"} {
		s.as(access.Operator, 422, "GET", "/api/v1/tasks/2/output?follow=true&stream="+stream, "")
	}
}

// A gap in a followed output is announced at its end.
func TestFollowOutputWithAGap(t *testing.T) {
	s := newSite(t, Options{})
	server, h := s.serve(), s.hand()
	s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain)
	begun := h.claim()
	first, second := testspace.Tail("nine\n"), testspace.Tail(strings.Repeat("nine\n", 4))
	second.Text = second.Text[10:] // what is missing looks like what is there
	h.report(begun, redisstate.LiveReport{Tail: first})
	got := s.get(t.Context(), server, access.Operator, "/tasks/1/output?follow=true")
	expect.Result(io.ReadFull(got.Body, make([]byte, len(first.Text)))).OK(t)
	h.report(begun, redisstate.LiveReport{Tail: second})
	expect.Result(io.ReadFull(got.Body, make([]byte, len(second.Text)))).OK(t)
	h.end(begun, rules.Result{Output: strings.Repeat("nine\n", 4) + "ten\n", Exit: "0"})
	expect.Equal(t, string(expect.Result(io.ReadAll(got.Body)).Value(t)), "ten\n")
	expect.Equal(t, got.Trailer.Get("X-Output-Incomplete"), "true")
}

// Streams do not take the places of other calls, and one token cannot take all places of streams.
func TestPlacesOfStreams(t *testing.T) {
	s := newSite(t, Options{AtOnce: 1, Streams: 4})
	server := s.serve()
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	const path = "/tasks/1/output?follow=true"
	ctx, stop := context.WithCancel(t.Context())
	for _, role := range []access.Role{access.Operator, access.Operator, access.Viewer} {
		got := s.get(ctx, server, role, path)
		expect.MustEqual(t, got.StatusCode, 200, got.Status)
	}
	expect.NoError(t, s.streams.Take("another token", 1))
	got := s.get(t.Context(), server, access.Submitter, "/events")
	expect.Equal(t, got.StatusCode, 503, "all places are taken", got.Status)
	s.as(access.Operator, 200, "GET", base+"/tasks/1", "")
	s.streams.Return("another token", 1)
	stop()
	expect.Eventually(t, "the streams end", func() bool {
		return s.streams.Taken() == 0
	})
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	for range 2 {
		s.get(ctx, server, access.Operator, path)
	}
	got = s.get(t.Context(), server, access.Operator, path)
	expect.Equal(t, got.StatusCode, 429)
	expect.NotEqual(t, got.Header.Get("Retry-After"), "")
}

// A stream ends when its token is revoked, and when the server stops.
func TestEndsOfStreams(t *testing.T) {
	s := newSite(t, Options{})
	s.checkPause = testspace.Soon
	server := s.serve()
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	viewer := s.get(t.Context(), server, access.Viewer, "/tasks/1/output?follow=true")
	operator := s.get(t.Context(), server, access.Operator, "/tasks/1/output?follow=true")
	expect.NoError(t, s.admin.RemoveToken(t.Context(), "viewer"))
	_, err := io.ReadAll(viewer.Body)
	expect.True(t, err != nil, "the stream of a revoked token ended as if it were whole")
	expect.NoError(t, server.Config.Shutdown(t.Context()))
	_, err = io.ReadAll(operator.Body)
	expect.True(t, err != nil, "the stream of a stopped server ended as if it were whole")
}

// A token that was added after the list of tokens was read may wait and stream at once.
func TestTokenThatIsNewerThanTheRoster(t *testing.T) {
	s := newSite(t, Options{})
	s.checkPause = time.Hour
	for _, name := range []string{"first", "second", "second"} {
		text := expect.Result(s.admin.AddToken(t.Context(), access.Token{Name: name, Role: access.Worker})).Value(t)
		token := expect.Result(s.admin.Authenticate(t.Context(), text)).Value(t)
		expect.True(t, s.roster.has(t.Context(), s.api, &token), name)
		expect.NoError(t, s.admin.RemoveToken(t.Context(), name))
	}
}

// A client that reads nothing is cut off, and does not keep its place.
func TestClientThatReadsNothing(t *testing.T) {
	s := newSite(t, Options{})
	d := &webtest.Deadlines{Handler: s}
	server, h := httptest.NewServer(d), s.hand()
	defer server.Close()
	s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain)
	h.end(h.claim(), rules.Result{Output: strings.Repeat("x", 30<<20), Exit: "0"})
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	expect.NoError(t, err)
	defer connection.Close()
	fmt.Fprintf(connection, "GET %s/tasks/1/output?follow=true HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", base, s.tokens[access.Operator])
	_, err = bufio.NewReader(connection).ReadString('\n')
	expect.NoError(t, err)
	d.Writes.Pass()
	expect.Eventually(t, "the client is cut off", func() bool { return s.streams.Taken() == 0 })
	left := d.Writes.Left()
	expect.Compare(t, left[len(left)-1], "<=", streamWriteTime, "the deadline of a part")
}

// The answers about tasks with large outputs need little more memory than the texts, and a task with many rounds has only the texts of the last ones.
func TestAnswersOfLargeOutputs(t *testing.T) {
	s := siteOn(t, redistest.Shared(t), Options{}) // not beside other tests, whose memory would count
	h := s.hand()
	two, rounds := 20, 7
	s.open(manager.Definition{Program: "p", Source: "rsync:/p/run.sh", MaxFails: &two})
	for i := range rounds {
		h.end(h.claim(), rules.Result{Output: strings.Repeat(string(rune('a'+i)), 1<<20), Error: "x", Exit: "1"})
	}
	got := s.as(access.Operator, 200, "GET", base+"/tasks/1", "").text
	for i := range rounds {
		expect.Equal(t, strings.Contains(got, strings.Repeat(string(rune('a'+i)), 1000)), i >= rounds-4, "the output of round", i) // round 7 is open
	}
	expect.Len(t, s.as(access.Operator, 200, "GET", base+"/tasks/1/output?round=0", "").text, 1<<20)
	for range 8 {
		s.open(manager.Definition{Program: "p", Source: "rsync:/p/run.sh"})
	}
	s.as(access.Operator, 200, "POST", base+"/tasks/1/cancel", "")
	for range 8 {
		h.end(h.claim(), rules.Result{Output: strings.Repeat("\x01", 1<<20), Exit: "0"})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got = s.as(access.Operator, 200, "GET", base+"/tasks?states=succeeded&read=output", "").text
	runtime.ReadMemStats(&after)
	expect.Equal(t, strings.Count(got, `"id"`), 8)
	most := uint64(12) // the test keeps copies, too
	if info, _ := debug.ReadBuildInfo(); slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		most = 24 // the race detector needs memory of its own
	}
	expect.Compare(t, (after.TotalAlloc-before.TotalAlloc)/uint64(len(got)), "<", most, "bytes of memory for a byte of the answer")
	expect.Equal(t, s.memory.Taken(), 0, "bytes of answers")
	expect.NoError(t, s.memory.Take("token operator", usualMemory/2-1<<20))
	s.as(access.Operator, 429, "GET", base+"/tasks?states=succeeded&read=output", "")
}
