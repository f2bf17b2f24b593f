package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

// another returns the API of another process for the same namespace.
func (s *site) another() *site { return s.with(s.Options) }

func (s *site) with(o Options) *site {
	other := *s
	other.api = newAPI(testspace.Manager(s, s.cfg), o)
	return &other
}

// A repeated claim gets the same tasks, from any process, and claims nothing more. An older one is refused.
func TestRepeatedClaims(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(5)...)
	w := s.worker()
	v := &remoteWorker{s.another(), w.token, w.session}
	first := w.claim(`{"most":2,"number":1}`).Tasks
	for _, x := range []*remoteWorker{w, v, w} {
		again := x.claim(`{"most":2,"number":1}`).Tasks
		expect.MustLen(t, again, 2)
		expect.MustEqual(t, again[0].ID, first[0].ID)
		expect.MustEqual(t, again[0].Claim, first[0].Claim)
		expect.Equal(t, again[1].ID, first[1].ID)
	}
	w.report(first[0], `"action":"complete"`)
	again := v.claim(`{"most":2,"number":1}`).Tasks
	expect.MustLen(t, again, 1)
	expect.Equal(t, again[0].ID, 2)
	expect.True(t, len(v.claim(`{"most":2,"number":2}`).Tasks) == 2, "the next claim")
	w.post(409, "claims", `{"most":2,"number":1}`)
	w.report(first[1], `"action":"fail","error":"x"`)
	expect.True(t, len(w.claim(`{"number":7}`).Tasks) == 1, "a claim may leave out numbers")
	expect.Len(t, w.claim(`{"number":8}`).Tasks, 0, "there are no more tasks")
	expect.Len(t, v.claim(`{"number":8}`).Tasks, 0, "there are no more tasks")
	s.open(handled(1)...)
	expect.Len(t, v.claim(`{"number":8}`).Tasks, 1, "a claim that got nothing goes on")
	expect.Len(t, w.claim(`{"number":8}`).Tasks, 1, "a claim that got nothing goes on")
}

// A claim can report rounds before it claims. A repeated one gets the same tasks and answers. If a report is refused, the
// claim gets no task.
func TestClaimsThatReport(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(4)...)
	w := s.worker()
	first := w.claim(`{"most":2,"number":1}`).Tasks
	expect.MustLen(t, first, 2)
	done := func(x broker.ClaimedTask) string { return "{" + of(x) + `,"action":"complete","result":1}` }
	w.refused(422, "claims", `{"number":2,"reports":[{`+of(first[0])+`}]}`, `{"number":2,"reports":[`+done(first[0])+","+done(first[0])+`]}`)
	w.refused(403, "claims", `{"number":2,"reports":[{"id":1,"round":0,"claim":"x","action":"complete"}]}`)
	for range 2 {
		got := w.claim(`{"most":1,"number":2,"reports":[` + done(first[0]) + "," + done(first[1]) + `]}`)
		expect.MustLen(t, got.Tasks, 1)
		expect.Equal(t, got.Tasks[0].ID, 3)
		expect.MustLen(t, got.Reports, 2)
		expect.True(t, got.Reports[1] == broker.Reported{ID: 2, Accepted: true}, got.Reports)
	}
	expect.Equal(t, s.task(2).State, task.Succeeded)
	expect.Equal(t, s.task(4).State, task.Open)
}

// A worker may prefetch tasks, and release them unstarted: they are open again in the same round.
func TestPrefetchedTasksOverHTTP(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(8)...)
	w := s.worker()
	got := w.claim(`{"most":1,"prefetch":3}`).Tasks
	expect.Compare(t, len(got), ">", 1)
	expect.Equal(t, got[0].Prefetched, false)
	last := got[len(got)-1]
	expect.True(t, last.Prefetched)
	w.report(last, `"action":"release","unstarted":true`)
	w.report(got[0], `"action":"release","unstarted":true`)
	expect.Equal(t, s.task(last.ID).State, task.Open)
	expect.Equal(t, s.task(last.ID).Round, 0)
	expect.Equal(t, s.task(got[0].ID).Round, 1, "it may have started")
}

// handled defines tasks without a source.
func handled(n int) []manager.Definition {
	all := make([]manager.Definition, n)
	for i := range all {
		all[i] = manager.Definition{Program: "p", Input: fmt.Sprint(i)}
	}
	return all
}

// Copies of a claim that wait in two processes get the same task, and no other.
func TestRepeatedClaimThatWaits(t *testing.T) {
	s := newSite(t, Options{})
	w := s.worker()
	got := make(chan broker.Claimed)
	for _, x := range []*remoteWorker{w, {s.another(), w.token, w.session}} {
		go func() { got <- x.await(`{"most":1,"wait":60,"number":3}`) }()
	}
	s.waiting(t, 1)
	s.open(handled(1)...)
	a, b := <-got, <-got
	expect.MustLen(t, a.Tasks, 1)
	expect.MustLen(t, b.Tasks, 1)
	expect.Equal(t, a.Tasks[0].Claim, b.Tasks[0].Claim)
}

// waiting waits until a number of calls wait for tasks.
func (s *site) waiting(t *testing.T, n int) {
	t.Helper()
	expect.Eventually(t, "calls wait", func() bool { return s.calls() >= n })
}

// calls returns how many calls wait for tasks.
func (s *site) calls() int {
	return int(s.api.waiting.Taken())
}

// Many calls wait at once, and each new task wakes one of them.
func TestManyClaimsWait(t *testing.T) {
	s := newSite(t, Options{})
	w := s.worker()
	const calls = 50
	got := make(chan broker.Claimed, calls)
	for range calls {
		go func() { got <- w.await(`{"wait":60}`) }()
	}
	s.waiting(t, calls)
	seen := map[int64]bool{}
	for range calls / 10 {
		s.open(handled(10)...)
		for range 10 {
			c := <-got
			expect.MustLen(t, c.Tasks, 1)
			expect.True(t, !seen[c.Tasks[0].ID], c)
			seen[c.Tasks[0].ID] = true
		}
	}
}

// A task that becomes due later wakes a call when it is due, and a task of a queue that no worker served before wakes one, too.
func TestClaimsWaitForDueTasksAndQueues(t *testing.T) {
	s := newSite(t, Options{})
	w := s.begin(s.tokens[access.Worker], "w", `,"queues":["new","default"],"tags":["gpu"]`)
	now := expect.Result(s.manager.Now(t.Context())).Value(t)
	s.open(manager.Definition{Program: "p", StartAfter: now.Add(testspace.Soon)})
	expect.Len(t, w.await(`{"wait":60}`).Tasks, 1, "the task that is due later")
	got := make(chan broker.Claimed)
	go func() { got <- w.await(`{"wait":60}`) }()
	s.waiting(t, 1)
	s.open(manager.Definition{Program: "p", Queue: "new", Tags: []string{"gpu"}})
	expect.Len(t, (<-got).Tasks, 1, "the task of a new queue")
}

// A worker gets only the tasks that it can run: those without a source, those of its programs, and those with a source if it wants them.
func TestOffers(t *testing.T) {
	s := newSite(t, Options{})
	s.open(testspace.Define("p", "rsync:/p/run.sh", "1"), manager.Definition{Program: "a"}, manager.Definition{Program: "b"})
	token := s.tokens[access.Worker]
	named := s.begin(token, "named", `,"programs":["b","c"]`)
	got := named.claim(`{"most":9}`).Tasks
	expect.MustLen(t, got, 1)
	expect.Equal(t, got[0].Program, "b")
	got = s.begin(token, "any", "").claim(`{"most":9}`).Tasks
	expect.MustLen(t, got, 1)
	expect.Equal(t, got[0].Program, "a")
	got = s.begin(token, "sources", `,"sources":true`).claim(`{"most":9}`).Tasks
	expect.MustLen(t, got, 1)
	expect.Equal(t, got[0].Source, "rsync:/p/run.sh")
}

// A client that goes away while it waits, or before it has got the whole answer, leaves no task behind.
func TestClientGoesAwayDuringAClaim(t *testing.T) {
	s := newSite(t, Options{})
	server := httptest.NewServer(s)
	defer server.Close()
	w := s.worker()
	dial := func() net.Conn {
		c := expect.Result(net.Dial("tcp", server.Listener.Addr().String())).Value(t)
		body := `{"wait":60,"most":3}`
		fmt.Fprintf(c, "POST %s/work/%s/claims HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", base, w.session, w.token, len(body), body)
		return c
	}
	for name, leave := range map[string]func(net.Conn){
		"close":      func(c net.Conn) { _ = c.Close() },
		"half-close": func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		"reset":      func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
	} {
		c := dial()
		s.waiting(t, 1)
		leave(c)
		expect.Eventually(t, name+": the call has ended", func() bool { return s.calls() == 0 })
		_ = c.Close()
	}
	c := dial()
	defer c.Close()
	s.waiting(t, 1)
	s.open(handled(1)...)
	answer := expect.Result(http.ReadResponse(bufio.NewReader(c), nil)).Value(t)
	expect.Contains(t, string(expect.Result(io.ReadAll(answer.Body)).Value(t)), `"id":1`)
	expect.True(t, s.task(1).State == task.Running, "a delivered task runs")
}

// A drained worker gets nothing until it is resumed, also if it waits already. Its other calls say who has drained it.
func TestDrainedWorker(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(2)...)
	w := s.worker()
	one := w.one()
	s.as(access.Operator, 204, "POST", base+"/workers/worker%2Fw/drain", "")
	for what, body := range map[string]string{"claims": "{}", "heartbeat": `{"runs":[1]}`, "renewals": "{" + of(one) + "}"} {
		text := w.post(200, what, body)
		expect.Contains(t, text, `"drained":"token operator at`, what)
		expect.NotContains(t, text, `"program"`, what)
	}
	expect.True(t, strings.Contains(s.as(access.Operator, 200, "GET", base+"/workers", "").text, `"state":"draining"`), "the list of workers")
	expect.True(t, w.report(one, `"action":"complete"`).Accepted, "its tasks end")
	s.as(access.Operator, 204, "POST", base+"/workers/worker%2Fw/resume", "")
	w.one()
}

// While Redis is away for longer than Options.Timeout, a call that waits gets 503. Afterwards, the same claim works, and a call that has waited gets a task, too.
func TestRedisAwayDuringAClaim(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := siteOn(t, proxy.Addr, Options{})
	w, patient := s.worker(), s.begin(s.tokens[access.Worker], "patient", "")
	waited := make(chan broker.Claimed)
	go func() { waited <- patient.await(`{"wait":60}`) }()
	s.waiting(t, 1)
	got := make(chan answer, 1)
	var hasty *site
	for timeout := testspace.Soon; hasty == nil || len(got) > 0; timeout *= 2 { // until Redis is fast enough for the claim to wait
		hasty = s.with(Options{Timeout: timeout})
		if len(got) > 0 {
			expect.Equal(t, (<-got).StatusCode, 503, timeout)
		}
		go func() { got <- (&remoteWorker{hasty, w.token, w.session}).claims(`{"wait":60,"number":1}`) }()
		expect.Eventually(t, "the claim waits, or is answered", func() bool { return len(got) > 0 || hasty.calls() > 0 })
	}
	proxy.Refuse()
	proxy.Cut()
	a := <-got
	expect.Equal(t, a.StatusCode, 503)
	expect.NotEqual(t, a.Header.Get("Retry-After"), "")
	expect.NotContains(t, a.text, "127.0.0.1")
	proxy.Resume()
	s.open(handled(2)...)
	expect.Len(t, (<-waited).Tasks, 1, "the call that has waited")
	expect.Len(t, w.await(`{"wait":60,"number":1}`).Tasks, 1, "the same claim")
}

// Too many waiting calls, of one token or of all, get 429 or 503, and no call of a route that does not wait is refused.
func TestTooManyWaitingClaims(t *testing.T) {
	s := newSite(t, Options{Waiting: 2, AtOnce: 1})
	w := s.worker()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ServeHTTP(httptest.NewRecorder(), webtest.Call(ctx, w.token, "POST", base+"/work/"+w.session+"/claims", `{"wait":60}`))
	}()
	s.waiting(t, 1)
	w.post(429, "claims", `{"wait":60}`)
	expect.True(t, len(w.claim("{}").Tasks) == 0, "a claim that does not wait")
	end()
	<-done
}

// A revoked token gets no task, although its call has waited for one.
func TestRevokedTokenWhileItWaits(t *testing.T) {
	s := newSite(t, Options{})
	s.checkPause = 0
	w := s.worker()
	got := make(chan answer)
	go func() { got <- w.claims(`{"wait":60}`) }()
	s.waiting(t, 1)
	expect.NoError(t, s.admin.RemoveToken(t.Context(), "worker"))
	s.open(handled(1)...)
	a := <-got
	expect.Equal(t, a.StatusCode, 403)
	expect.Equal(t, s.task(1).State, task.Open)
}

// When the server stops, waiting calls end, and no task is lost.
func TestShutdownEndsWaitingClaims(t *testing.T) {
	s := newSite(t, Options{})
	server := httptest.NewServer(s)
	defer server.Close()
	w := s.worker()
	got := make(chan int)
	go func() {
		r, err := http.NewRequest("POST", server.URL+base+"/work/"+w.session+"/claims", strings.NewReader(`{"wait":60}`))
		if err == nil {
			r.Header.Set("Authorization", "Bearer "+w.token)
			var a *http.Response
			if a, err = http.DefaultClient.Do(r); err == nil {
				defer a.Body.Close()
				got <- a.StatusCode
				return
			}
		}
		got <- 0
	}()
	s.waiting(t, 1)
	expect.NoError(t, server.Config.Shutdown(t.Context()))
	expect.True(t, <-got == 503, "status")
}

// No deadline for the body ends a call that waits: when the body is read, the connection has no such deadline.
func TestNoReadDeadlineDuringAClaim(t *testing.T) {
	s := newSite(t, Options{})
	w := s.worker()
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(d, webtest.Call(t.Context(), w.token, "POST", base+"/work/"+w.session+"/claims", "{}"))
	expect.Equal(t, d.Code, 200)
	expect.MustTrue(t, len(d.set) > 1, d.Code, d.set)
	expect.True(t, d.set[len(d.set)-1].IsZero(), d.Code, d.set)
}

// deadlines records the read deadlines of a connection.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// An input of any bytes comes in base64, without arguments. Opening refuses what is not base64.
func TestWorkersGetInputsOfAnyBytes(t *testing.T) {
	s := newSite(t, Options{})
	s.as(access.Operator, 201, "POST", base+"/tasks", `{"program":"p","input":"AP9h","input_encoding":"base64"}`)
	s.as(access.Operator, 422, "POST", base+"/tasks", `{"program":"p","input":"AP9","input_encoding":"base64"}`)
	s.as(access.Operator, 422, "POST", base+"/tasks", `{"program":"p","input":"AP9h","input_encoding":"hex"}`)
	got := s.worker().claim("").Tasks
	expect.MustLen(t, got, 1)
	expect.MustEqual(t, string(got[0].InputBase64), "\x00\xffa")
	expect.MustEqual(t, got[0].Input, nil)
	expect.Len(t, got[0].Args, 0)
	expect.Contains(t, s.as(access.Operator, 200, "GET", base+"/tasks/1", "").text, `"input":"AP9h","input_encoding":"base64"`)
}

// A worker with sources and an empty list of programs gets the tasks that need a program, and reads the stored ones.
func TestProgramsOfClaims(t *testing.T) {
	s := newSite(t, Options{})
	archive := strings.Repeat("an archive\x00\xff", 200_000) // several parts
	stored := func(archive string) (source, sum string) {
		source = expect.Result(managing.Of(s.manager).Store.Programs.PutProgram(t.Context(), []byte(archive))).Value(t)
		return source, task.StoredProgram(source)
	}
	source, sum := stored(archive)
	_, other := stored("another archive")
	s.open(manager.Definition{Program: "handled"}, testspace.Define("p", source, ""), testspace.Define("q", "rsync:/q/run.sh", ""))
	w := s.begin(s.tokens[access.Worker], "w", `,"sources":true,"programs":[]`)
	tasks := w.claim(`{"most":9}`).Tasks
	expect.MustLen(t, tasks, 2)
	read := func(w *remoteWorker, one broker.ClaimedTask, sum string) answer {
		return s.call(w.token, "GET", fmt.Sprintf("%s/work/%s/programs/%s?id=%d&round=%d&claim=%s", base, w.session, sum, one.ID, one.Round, one.Claim), "")
	}
	got := read(w, tasks[0], sum)
	expect.Equal(t, got.StatusCode, 200)
	expect.Equal(t, got.Header.Get("Content-Type"), octets)
	expect.True(t, got.text == archive, "another archive of", len(got.text), "bytes")

	forged, thief := tasks[0], s.begin(s.token(access.Token{Name: "thief", Role: access.Worker}), "w", "")
	forged.Round = 1
	for what, c := range map[string]struct {
		answer
		status int
	}{
		"the program of another task":   {read(w, tasks[1], sum), 404},
		"another program":               {read(w, tasks[0], other), 404},
		"no SHA-256":                    {read(w, tasks[0], "x"), 422},
		"another round":                 {read(w, forged, sum), 404},
		"the claim of another worker":   {read(thief, tasks[0], sum), 403},
		"the session of another worker": {read(&remoteWorker{s, thief.token, w.session}, tasks[0], sum), 403},
	} {
		expect.Equal(t, c.StatusCode, c.status, what, c.text)
	}
	w.report(tasks[0], `"action":"complete"`)
	expect.Equal(t, read(w, tasks[0], sum).StatusCode, 409, "after the report")
}
