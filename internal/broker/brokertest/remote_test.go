package brokertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/webtest"
)

// call makes a call of a worker, and returns the status and the answer.
func (s *scene) call(method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	a := s.api()
	a.ServeHTTP(w, webtest.Call(context.WithoutCancel(s.Context()), a.token, method, path, body))
	return w.Code, w.Body.String()
}

// callAndGo makes a call whose client goes before it has got the answer.
func (s *scene) callAndGo(with leaving, path, body string) {
	s.Helper()
	ctx, leave := context.WithCancel(s.Context())
	defer leave()
	a := s.api()
	with.ResponseRecorder, with.leave = httptest.NewRecorder(), leave
	a.ServeHTTP(with, webtest.Call(ctx, a.token, http.MethodPost, path, body))
}

// A leaving client goes with the first byte of its answer, or with the last one.
type leaving struct {
	*httptest.ResponseRecorder
	first, last bool
	leave       func()
}

func (l leaving) Flush() {
	if l.last {
		l.leave()
	}
}

func (l leaving) WriteHeader(status int) {
	if l.first {
		l.leave()
	}
	l.ResponseRecorder.WriteHeader(status)
}

// must makes a call that must succeed, and reads its answer.
func must[T any](s *scene, method, path, body string) (answer T) {
	s.Helper()
	status, text := s.call(method, path, body)
	expect.MustTrue(s, status < 300, method, path, body, status, text)
	if text != "" {
		answer = webtest.Decode[T](s, text)
	}
	return answer
}

// toldBy returns what the status of a report says.
func answerOf(s *scene, status int, text string) answer {
	s.Helper()
	switch {
	case status < 300:
		return accepted
	case status == 400 || status == 413 || status == 422:
		return invalid
	case status == 409 || status == 404 || status == 403 || status == 410:
		return refused
	}
	s.Errorf("a report has the status %d: %s", status, text)
	return ""
}

const work = "/api/v1/work"

// A remote is a worker over HTTP.
type remote struct {
	*scene
	offer
	session string
	number  int64
}

func newRemote(s *scene, o offer) worker { return &remote{scene: s, offer: o} }

func (w *remote) register() string {
	body := map[string]any{"name": w.name, "queues": []string{w.queue}, "programs": []string{"p"}}
	if w.campaign != "" {
		body["campaign"] = w.campaign
	}
	if w.lease > 0 {
		body["lease"] = w.lease
	}
	if w.host != "" {
		body["host"] = w.host
	}
	status, text := w.call(http.MethodPost, work, encode(body))
	if status != 200 {
		return text
	}
	w.session = webtest.Decode[struct{ Session string }](w, text).Session
	return ""
}

func (w *remote) begin() {
	w.Helper()
	if w.session == "" {
		expect.Equal(w, w.register(), "", "register")
	}
}

func (w *remote) claim() round {
	w.Helper()
	w.begin()
	w.number++
	return w.claimWith(fmt.Sprintf(`{"number":%d,"time_left":%v}`, w.number, float64(w.timeLimit)))
}

type remoteTask struct {
	ID    int64  `json:"id"`
	Round int    `json:"round"`
	Claim string `json:"claim"`
}

func (w *remote) claimWith(body string) round {
	w.Helper()
	got := must[struct{ Tasks []remoteTask }](w.scene, http.MethodPost, work+"/"+w.session+"/claims", body).Tasks
	if len(got) == 0 {
		return nil
	}
	expect.Len(w, got, 1, "claimed")
	return &remoteRound{w, got[0]}
}

func (w *remote) claimAndGo(with leaving) {
	w.begin()
	w.callAndGo(with, work+"/"+w.session+"/claims", "{}")
}

func (w *remote) beat() bool {
	status, _ := w.call(http.MethodPost, work+"/"+w.session+"/heartbeat", "{}")
	return status == 200
}

func (w *remote) signOff() { must[any](w.scene, http.MethodDelete, work+"/"+w.session, "") }

type remoteRound struct {
	*remote
	remoteTask
}

func (r *remoteRound) id() int64 { return r.ID }

func (r *remoteRound) renew() bool {
	status, text := r.call(http.MethodPost, work+"/"+r.session+"/renewals", encode(r.remoteTask))
	return status == 200 && strings.Contains(text, `"lost":[]`)
}

func (r *remoteRound) report(e ending) answer {
	type body struct {
		remoteTask
		Action    string            `json:"action"`
		Exit      int               `json:"exit,omitempty"`
		Error     string            `json:"error,omitempty"`
		Permanent bool              `json:"permanent,omitempty"`
		Unfit     bool              `json:"unfit,omitempty"`
		Later     *task.Seconds     `json:"later,omitempty"`
		Open      []task.Definition `json:"open,omitempty"`
	}
	b := body{remoteTask: r.remoteTask, Action: "complete", Open: e.opens}
	switch {
	case e.fails != "" && len(e.opens) > 0: // as a program whose exit status is 1
		b.Exit = 1
	case e.fails != "" || e.returned:
		b.Action, b.Error, b.Permanent, b.Unfit = "fail", e.fails, e.permanent, e.unfit
	}
	if e.later > 0 {
		b.Later = &e.later
	}
	if e.returned {
		b.Action = "release"
	}
	text := encode(b)
	if e.result != "" { // it may be no JSON
		text = strings.TrimSuffix(text, "}") + `,"result":` + e.result + "}"
	}
	status, answer := r.call(http.MethodPost, work+"/"+r.session+"/reports", text)
	for status == 503 { // a worker repeats the call
		status, answer = r.call(http.MethodPost, work+"/"+r.session+"/reports", text)
	}
	if status != 200 {
		return answerOf(r.scene, status, answer)
	}
	got := webtest.Decode[struct {
		Reports []struct {
			Accepted bool
			Detail   string
		}
	}](r, answer).Reports[0]
	switch {
	case !got.Accepted:
		return refused
	case got.Detail != "":
		return acceptedAsFailed
	}
	return accepted
}

// A taskmasterWorker is a worker of Taskmaster.
type taskmasterWorker struct {
	*scene
	offer
}

func newTaskmaster(s *scene, o offer) worker { return &taskmasterWorker{s, o} }

func (w *taskmasterWorker) body(more string) string {
	return fmt.Sprintf(`{"workerId":%q,"queueName":%q%s}`, w.name, w.queue, more)
}

func (w *taskmasterWorker) register() string {
	status, text := w.call(http.MethodPost, "/taskmaster/workers/v1/register", w.body(""))
	if status == 200 {
		return ""
	}
	return text
}

type taskmasterTask struct{ TaskID string }

func (w *taskmasterWorker) claim() round {
	w.Helper()
	got := must[struct{ Tasks []taskmasterTask }](w.scene, http.MethodPost, "/taskmaster/tasks/v1/claim", w.body("")).Tasks
	if len(got) == 0 {
		return nil
	}
	expect.Len(w, got, 1, "claimed")
	id := expect.Result(strconv.ParseInt(got[0].TaskID[24:], 16, 64)).Value(w)
	return &taskmasterRound{w, got[0].TaskID, id}
}

func (w *taskmasterWorker) claimAndGo(with leaving) {
	w.callAndGo(with, "/taskmaster/tasks/v1/claim", w.body(""))
}

func (w *taskmasterWorker) beat() bool {
	status, _ := w.call(http.MethodPost, "/taskmaster/workers/v1/"+w.name+"/heartbeat", "")
	return status == 204
}

func (w *taskmasterWorker) signOff() { w.Fatal("Taskmaster has no such call") }

type taskmasterRound struct {
	*taskmasterWorker
	uuid string
	task int64
}

func (r *taskmasterRound) id() int64 { return r.task }

// renew sends a heartbeat, or as a worker that was silent for too long must, a registration.
func (r *taskmasterRound) renew() bool { return r.beat() || r.register() == "" }

func (r *taskmasterRound) report(e ending) answer {
	path, body := "/taskmaster/tasks/v1/"+r.uuid+"/complete", r.body("")
	if e.result != "" {
		body = r.body(`,"result":` + e.result)
	}
	if e.fails != "" {
		path, body = "/taskmaster/tasks/v1/"+r.uuid+"/fail", r.body(`,"error":`+encode(e.fails))
	}
	body = strings.Replace(body, fmt.Sprintf(`,"queueName":%q`, r.queue), "", 1)
	status, text := r.call(http.MethodPost, path, body)
	return answerOf(r.scene, status, text)
}

// A skuldClient is a client of Skuld.
type skuldClient struct {
	*scene
	offer
}

var unique atomic.Int64

func skuldTask(d *task.Properties) {
	d.Program, d.Unique, d.UniqueUntil = "skuld", fmt.Sprint("skuld:", unique.Add(1)), task.UntilArchived
}

func newSkuld(s *scene, o offer) worker { return &skuldClient{s, o} }

func (c *skuldClient) register() string { return "" }

func (c *skuldClient) body() string {
	return fmt.Sprintf(`{"queue":%q,"dt":%d}`, c.queue, cmp.Or(c.lease, 60).Std().Milliseconds())
}

func (c *skuldClient) claim() round {
	c.Helper()
	got := must[struct {
		Task *struct {
			ID     string
			Claims []json.RawMessage
		}
	}](c.scene, http.MethodPost, "/skuld/claim", c.body()).Task
	if got == nil {
		return nil
	}
	id := expect.Result(c.store.Holder(c.Context(), "skuld:"+got.ID)).Value(c)
	return &skuldRound{c, fmt.Sprintf(`"task":%q,"claim":%d`, got.ID, len(got.Claims)-1), id}
}

func (c *skuldClient) claimAndGo(with leaving) { c.callAndGo(with, "/skuld/claim", c.body()) }

func (c *skuldClient) beat() bool { return true }

func (c *skuldClient) signOff() { c.Fatal("Skuld has no such call") }

type skuldRound struct {
	*skuldClient
	claimed string
	task    int64
}

func (r *skuldRound) id() int64 { return r.task }

func (r *skuldRound) renew() bool {
	status, _ := r.call(http.MethodPost, "/skuld/renew", fmt.Sprintf(`{%s,"dt":%d}`, r.claimed,
		cmp.Or(r.lease, 60).Std().Milliseconds()))
	return status == 200
}

func (r *skuldRound) report(e ending) answer {
	if e.fails != "" {
		r.Fatal("Skuld has no failures")
	}
	body := "{" + r.claimed + "}"
	if e.result != "" {
		body = "{" + r.claimed + `,"message":` + e.result + "}"
	}
	status, text := r.call(http.MethodPost, "/skuld/complete", body)
	return answerOf(r.scene, status, text)
}
