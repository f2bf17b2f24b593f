package web

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/redisstate"
)

// A listener reads a stream of events.
type listener struct {
	testing.TB
	in   *bufio.Scanner
	last string // id of the last event
	stop func()
}

func (s *site) listen(server *httptest.Server, role access.Role, query string, headers ...string) *listener {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	got := s.get(ctx, server, role, "/events"+query, headers...)
	expect.MustEqual(s, got.StatusCode, 200)
	expect.MustEqual(s, got.Header.Get("Content-Type"), eventStream)
	return &listener{TB: s.TB, in: bufio.NewScanner(got.Body), stop: stop}
}

// next returns the next event as "type data".
func (l *listener) next() string {
	l.Helper()
	kind := ""
	for l.in.Scan() {
		name, value, _ := strings.Cut(l.in.Text(), ": ")
		switch name {
		case "event":
			kind = value
		case "id":
			l.last = value
		case "data":
			return kind + " " + value
		}
	}
	l.Fatal("the stream has ended", l.in.Err())
	return ""
}

// until reads events until one contains a text. It returns it.
func (l *listener) until(part string) string {
	l.Helper()
	for {
		if e := l.next(); strings.Contains(e, part) {
			return e
		}
	}
}

func newEventSite(t *testing.T) (*site, *httptest.Server) {
	s := newSite(t, Options{})
	s.events.pause = testspace.Soon
	return s, s.serve()
}

// A client gets each state of a task, its progress and its output, and only of the tasks that it asks for and may see.
func TestEvents(t *testing.T) {
	s, server := newEventSite(t)
	h := s.hand()
	all, own, group := s.listen(server, access.Viewer, ""), s.listen(server, access.Submitter, ""), s.listen(server, access.Operator, "?group=submitter/g&types=state")
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	all.until(`state {"id":1,"state":"open"`)
	first := h.claim()
	all.until(`state {"id":1,"state":"running"`)
	progress := "0.5 half"
	h.report(first, redisstate.LiveReport{Progress: &progress})
	all.until(`progress {"id":1,"round":0,"progress":{"fraction":0.5,"text":"half"}}`)
	s.as(access.Submitter, 201, "POST", base+"/tasks", `{"program":"p","source":"rsync:/p/run.sh","campaign":"submitter/g"}`)
	for _, l := range []*listener{own, group} {
		e := l.next()
		expect.True(t, strings.HasPrefix(e, `state {"id":2,"state":"open","round":0,"program":"p","campaign":"submitter/g","time":"`), e)
	}
	second := h.claim()
	output := s.listen(server, access.Submitter, "?ids=2&types=output")
	h.report(second, redisstate.LiveReport{Tail: testspace.Tail("one\n")})
	output.until(`output {"id":2,"round":0,"text":"one\n"`)
	h.end(second, rules.Result{Output: "one\ntwo\n", Exit: "0"})
	output.until(`output {"id":2,"round":0,"text":"two\n","ended":true}`)
	for _, l := range []*listener{own, group, all} {
		l.until(`state {"id":2,"state":"succeeded","outcome":"succeeded"`)
	}
	h.end(first, rules.Result{Output: "", Exit: "1"})
	s.as(access.Operator, 200, "POST", base+"/tasks/1/retry", "")
	h.report(h.claim(), redisstate.LiveReport{Progress: &progress}) // the same as in the round before
	all.until(`progress {"id":1,"round":1,"progress":{"fraction":0.5,"text":"half"}}`)
	s.as(access.Submitter, 200, "POST", base+"/tasks/2/retry", "")
	own.until(`state {"id":2,"state":"open","round":1`)
}

func TestRefusedEvents(t *testing.T) {
	s := newSite(t, Options{})
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	for path, status := range map[string]int{
		"/events?types=output": 422, "/events?types=none": 422, "/events?ids=a": 422, "/events?group=a/b": 403, "/events?ids=1&types=output": 404,
		"/events?ids=9&types=output": 404, "/events?ids=" + strings.Repeat("1,", 100) + "1": 422, "/events?ids=1": 200,
	} {
		s.as(access.Submitter, status, "GET", base+path, "")
	}
	s.as(access.Operator, 422, "GET", base+"/events?group=%00", "")
	expect.True(t, s.events.begun == nil, "refused clients have left something")
	expect.Len(t, s.events.follows, 0, "refused clients have left something")
}

// A client that was away gets what it has missed, also from another process.
func TestEventsContinue(t *testing.T) {
	s, server := newEventSite(t)
	l := s.listen(server, access.Viewer, "")
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	l.until(`"id":1,"state":"open"`)
	l.stop()
	h := s.hand()
	h.end(h.claim(), rules.Result{Exit: "0"})
	var more []task.Definition
	for range 700 {
		more = append(more, testspace.Define("p", "rsync:/p/run.sh", "1"))
	}
	s.open(more...)
	other := newAPI(testspace.Manager(t, s.cfg), Options{Log: testspace.Silent})
	other.events.pause = testspace.Soon
	away := httptest.NewServer(other)
	defer away.Close()
	again := s.listen(away, access.Viewer, "", "Last-Event-ID: "+l.last)
	seen := map[string]bool{}
	for len(seen) < 701 {
		e := webtest.Decode[stateData](t, strings.TrimPrefix(again.next(), "state "))
		seen[fmt.Sprint(e.ID)+" "+string(e.State)] = true
	}
	expect.True(t, seen["1 succeeded"], "events are missing")
	expect.True(t, seen["701 open"], "events are missing")
	again.stop()
}

// A position that nobody knows, or from the future, is a gap.
func TestEventGaps(t *testing.T) {
	s, server := newEventSite(t)
	for _, last := range []string{"x", "-1", "inf", "NaN", "1e300", "99999999999", fmt.Sprint(math.MaxInt64), "0", "12 34"} {
		l := s.listen(server, access.Viewer, "?types=state", "Last-Event-ID: "+last)
		e := l.next()
		expect.True(t, strings.HasPrefix(e, "gap "), last, e)
		s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
		l.until(`"state":"open"`)
		l.stop()
	}
}

// After looks at Redis that failed, clients learn that events may be missing, and get the later ones.
func TestEventsAfterAnOutage(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := siteOn(t, proxy.Addr, Options{})
	s.events.pause = testspace.Soon
	l := s.listen(s.serve(), access.Viewer, "")
	proxy.Alter(func([]byte) []byte { return []byte("-ERR broken\r\n") })
	looks := func() int { s.events.mu.Lock(); defer s.events.mu.Unlock(); return s.events.fails }
	expect.Eventually(t, "a failed look", func() bool { return looks() > 0 })
	proxy.Resume()
	l.until("gap ")
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	l.until(`"id":1,"state":"open"`)
}

// A client that does not read is cut off, and does not keep the others from their events.
func TestSlowListener(t *testing.T) {
	s := newSite(t, Options{})
	slow := &subscriber{kinds: map[string]bool{stateEvents: true}, queue: make(chan *event, 2), cut: make(chan struct{}), account: &pool.Account{}}
	quick := &subscriber{kinds: map[string]bool{stateEvents: true}, queue: make(chan *event, 100), cut: make(chan struct{}), account: &pool.Account{}}
	for _, c := range []*subscriber{slow, quick} {
		leave := expect.Result(s.events.join(t.Context(), c)).Value(t)
		defer leave()
	}
	for range 10 {
		s.events.publish(newEvent(stateEvents, 1, "", "", "", nil))
	}
	<-slow.cut
	expect.Len(t, quick.queue, 10, "events")
}

// Many clients cost Redis no more than one. Without clients, Redis is not asked.
func TestCostOfListeners(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := siteOn(t, proxy.Addr, Options{})
	s.events.pause = 0
	var replies atomic.Int64
	proxy.Alter(func(reply []byte) []byte { replies.Add(1); return reply })
	looks := func() int { s.events.mu.Lock(); defer s.events.mu.Unlock(); return s.events.looks }
	cost := func(clients int) float64 {
		for range clients {
			c := &subscriber{kinds: map[string]bool{stateEvents: true, progressEvents: true}, queue: make(chan *event, 100), cut: make(chan struct{}), account: &pool.Account{}}
			leave := expect.Result(s.events.join(t.Context(), c)).Value(t)
			defer leave()
		}
		begun, before := looks(), replies.Load()
		expect.Eventually(t, "100 looks", func() bool { return looks() >= begun+100 })
		return float64(replies.Load()-before) / float64(looks()-begun)
	}
	one, many := cost(1), cost(200)
	expect.True(t, many <= 1.5*one+1, "a look needs", many, "replies of Redis for 200 clients, and", one, "for one")
	expect.True(t, s.events.begun == nil, "the reader goes on without clients")
}

// Heartbeats move the position of a client for which nothing happens.
func TestEventHeartbeat(t *testing.T) {
	s, _ := newEventSite(t)
	s.events.heartbeat = testspace.Soon
	server := s.serve()
	l := s.listen(server, access.Viewer, "?ids=99")
	ids := map[string]bool{}
	for len(ids) < 5 && l.in.Scan() {
		if id, ok := strings.CutPrefix(l.in.Text(), "id: "); ok {
			ids[id] = true
		}
	}
	expect.True(t, !ids[""], ids)
	expect.Compare(t, len(ids), ">=", 5)
	l.stop()
}

// A blocking is an answer whose parts after the first wait until the test ends.
type blocking struct {
	*httptest.ResponseRecorder
	parts   int
	blocked chan<- struct{}
	end     <-chan struct{}
}

func (b *blocking) Flush() {
	if b.parts++; b.parts > 1 {
		select {
		case b.blocked <- struct{}{}:
		case <-b.end:
		}
		<-b.end
	}
}

// Clients that do not read what they have missed delay no other client, and a token cannot follow all outputs.
func TestSharesOfEvents(t *testing.T) {
	s := newSite(t, Options{})
	s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain)
	ctx, end := context.WithCancel(t.Context())
	blocked := make(chan struct{})
	var calls sync.WaitGroup
	for range catchingUp {
		calls.Go(func() {
			r := webtest.Call(ctx, s.tokens[access.Operator], "GET", base+"/events", "", "Last-Event-ID: 1")
			s.ServeHTTP(&blocking{httptest.NewRecorder(), 0, blocked, ctx.Done()}, r)
		})
	}
	for range catchingUp {
		<-blocked
	}
	expect.Len(t, s.events.catching, 0, "places of clients that catch up")
	end()
	calls.Wait()
	expect.NoError(t, s.events.followed.Take("token operator", maxFollowed/2))
	s.as(access.Operator, 429, "GET", base+"/events?types=output&ids=1", "")
	s.as(access.Viewer, 200, "GET", base+"/events?types=output&ids=1", "")
}
