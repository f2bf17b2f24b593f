package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

// A remoteWorker is a worker of the API in a test.
type remoteWorker struct {
	*site
	token, session string
}

// begin registers a worker. The body has the members after its name.
func (s *site) begin(token, name, more string) *remoteWorker {
	s.Helper()
	got := s.call(token, "POST", base+"/work", fmt.Sprintf(`{"name":%q%s}`, name, more))
	expect.MustEqual(s, got.StatusCode, 200, "register", got.text)
	return &remoteWorker{s, token, webtest.Decode[broker.Registered](s, got.text).Session}
}

// post makes a call of the worker, and fails the test if the status differs.
func (w *remoteWorker) post(status int, what, body string) string {
	w.Helper()
	got := w.call(w.token, "POST", base+"/work/"+w.session+"/"+what, body)
	expect.Equal(w, got.StatusCode, status, what, body, got.text)
	return got.text
}

// claim claims tasks.
func (w *remoteWorker) claim(body string) broker.Claimed {
	w.Helper()
	return webtest.Decode[broker.Claimed](w, w.post(200, "claims", body))
}

// claims makes a claim that waits, again and again until the answer is more than that there is no task yet.
func (w *remoteWorker) claims(body string) answer {
	w.Helper()
	for {
		got := w.call(w.token, "POST", base+"/work/"+w.session+"/claims", body)
		if got.StatusCode != 200 || !strings.Contains(got.text, `"tasks":[]`) {
			return got
		}
	}
}

// await claims until there is a task.
func (w *remoteWorker) await(body string) broker.Claimed {
	w.Helper()
	got := w.claims(body)
	expect.Equal(w, got.StatusCode, 200, got.text)
	return webtest.Decode[broker.Claimed](w, got.text)
}

// one claims a task, which must be there.
func (w *remoteWorker) one() broker.ClaimedTask {
	w.Helper()
	c := w.claim("")
	expect.MustLen(w, c.Tasks, 1, "tasks")
	return c.Tasks[0]
}

// of returns the members of a report or a renewal that name the run of a task.
func of(t broker.ClaimedTask) string {
	return fmt.Sprintf(`"id":%d,"round":%d,"claim":%q`, t.ID, t.Round, t.Claim)
}

// report reports a task, and returns the answer.
func (w *remoteWorker) report(t broker.ClaimedTask, more string) broker.Reported {
	w.Helper()
	all := webtest.Decode[outcomes](w, w.post(200, "reports", "{"+of(t)+","+more+"}")).Reports
	expect.MustLen(w, all, 1)
	return all[0]
}

func (s *site) task(id int64) *manager.Task {
	s.Helper()
	t := expect.Result(s.manager.Get(s.Context(), id)).Value(s)
	return t
}

// worker returns a worker with the token of the role.
func (s *site) worker() *remoteWorker {
	s.Helper()
	return s.begin(s.tokens[access.Worker], "w", "")
}

func (s *site) define(d ...manager.Definition) {
	s.Helper()
	s.open(d...)
}

func TestWorkOnATask(t *testing.T) {
	s := newSite(t, Options{})
	s.define(manager.Definition{Program: "p", Input: `a "b c"`, Meta: "m", Group: "g", Timeout: 90e9})
	w := s.worker()
	one := w.one()
	expect.Equal(t, one.ID, 1)
	expect.Equal(t, one.Round, 0)
	expect.Equal(t, one.Program, "p")
	expect.Equal(t, *one.Input, `a "b c"`)
	expect.Equal(t, *one.Meta, "m")
	expect.Equal(t, one.Campaign, "g")
	expect.Equal(t, strings.Join(one.Args, "|"), "a|b c")
	expect.Compare(t, *one.Seconds, ">", 89)
	expect.True(t, !one.Deadline.IsZero(), one)
	text := w.post(200, "renewals", "{"+of(one)+`,"progress":{"fraction":0.5,"text":"half"},"checkpoint":"c","updates":["x","y"],"updates_from":1}`)
	expect.Contains(t, text, `"lost":[]`)
	expect.Contains(t, text, `"lease":60`)
	w.post(200, "renewals", "{"+of(one)+`,"updates":["y","z"],"updates_from":2,"tail":{"base64":"b//+","end":7,"stdout":5,"stderr":-1}}`)
	large := strings.Repeat("AAAA", 1366)
	for _, tail := range []string{
		`"base64":"b//+","end":2,"stdout":0,"stderr":0`, `"base64":"","end":1,"stdout":-2,"stderr":0`,
		`"base64":"` + large + `","end":4098,"stdout":0,"stderr":0`,
	} {
		w.refused(422, "renewals", "{"+of(one)+`,"tail":{`+tail+`}}`)
	}
	got := s.task(1)
	expect.Equal(t, got.LastRun().Tail, "o\xff\xfe")
	expect.Equal(t, got.LastRun().TailEnd, task.TailEnd{All: 7, Stdout: 5, Stderr: -1})
	expect.Equal(t, got.LastRun().Progress.Fraction, 0.5)
	expect.Equal(t, got.State, task.Running)
	for range 3 {
		answer := w.report(one, `"action":"complete","stdout":"out","result":{"n":[1]},"seconds":0.25`)
		expect.True(t, answer == broker.Reported{ID: 1, Accepted: true}, answer)
	}
	got = s.task(1)
	r := got.LastRun()
	expect.Equal(t, got.State, task.Succeeded)
	expect.Equal(t, r.Output, "out")
	expect.Equal(t, r.Result, `{"n":[1]}`)
	expect.Equal(t, r.Exit, "0")
	expect.Equal(t, r.Worker, "worker/w")
	expect.Equal(t, r.Error, "")
	expect.Equal(t, expect.Result(s.redis.XLen(t.Context(), s.cfg.Namespace+":updates:1").Result()).Value(t), 3)
}
