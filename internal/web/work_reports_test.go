package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// settle settles the executed tasks as a server does.
func (s *site) settle() {
	s.Helper()
	h := s.hand()
	for one, err := range s.manager.List(s.Context(), manager.Query{States: []task.State{task.Executed}}) {
		expect.NoError(s, err)
		now := expect.Result(h.Now(s.Context())).Value(s)
		if move, ok := rules.Settle(testspace.Read(s, h.Store, one.ID), now, nil); ok {
			testspace.Apply(s, h.Store, move, nil)
		}
	}
}

// Each kind of report has the effect of the errors of handlers, and a second copy gets the same answer, also after the server has settled the task.
func TestReports(t *testing.T) {
	s := newSite(t, Options{})
	for _, c := range []struct {
		more, fails   string // members of the report; max_fails
		state         task.State
		text, exit    string
		round, fails2 int
	}{
		{`"action":"complete"`, "0", task.Succeeded, "", "0", 0, 0},
		{`"action":"complete","exit":3`, "0", task.Failed, "", "3", 0, 1},
		{`"action":"complete","stderr":"bad"`, "0", task.Failed, "bad", "0", 0, 1},
		{`"action":"fail","error":"why"`, "1", task.Open, "why", "1", 1, 1},
		{`"action":"fail","error":"why","exit":7`, "0", task.Failed, "why", "7", 0, 1},
		{`"action":"fail"`, "0", task.Failed, "the worker gave no reason", "1", 0, 1},
		{`"action":"fail","error":"why","permanent":true`, "5", task.Failed, "why", "1", 0, 1},
		{`"action":"fail","error":"busy","later":0`, "0", task.Open, "", "", 1, 0},
		{`"action":"fail","error":"no gpu","unfit":true`, "0", task.Open, "", "", 1, 0},
		{`"action":"release","error":"stopping"`, "0", task.Open, "", "", 1, 0},
		{
			`"action":"complete","stderr":"two\nlines","result":"` + strings.Repeat("x", 1<<20) + `"`, "1", task.Open,
			"two\nlines\nresult: 1048578 bytes, more than 1048576", "", 1, 1,
		},
	} {
		s.TB = t
		s.as(access.Operator, 201, "POST", base+"/tasks", `{"program":"p","fail_on":"any","max_fails":`+c.fails+`}`)
		w := s.begin(s.tokens[access.Worker], fmt.Sprintf("w%d", len(s.all())), "")
		one := w.one()
		first := w.report(one, c.more)
		expect.True(t, first.Accepted, c.more, first)
		if _, why, _ := strings.Cut(c.text, "result: "); why != "" {
			expect.Contains(t, first.Detail, why)
		} else {
			expect.Equal(t, first.Detail, "", c.more)
		}
		s.settle()
		again := (&remoteWorker{s.another(), w.token, w.session}).report(one, c.more)
		expect.True(t, again.Accepted, c.more, again)
		expect.Equal(t, again.Detail != "", first.Detail != "", c.more)
		got := s.task(one.ID)
		r := got.RoundNumber(0)
		expect.Equal(t, got.State, c.state, c.more)
		expect.True(t, strings.HasPrefix(r.Error, c.text), c.more, got.State, r.Error, r.Exit, got.Round, got.Fails)
		expect.Equal(t, r.Exit, c.exit, c.more)
		expect.Equal(t, got.Round, c.round, c.more)
		expect.Equal(t, got.Fails, c.fails2, c.more)
		s.as(access.Operator, 200, "POST", base+"/tasks/actions", fmt.Sprintf(`{"action":"cancel","ids":[%d]}`, one.ID))
	}
}

// A worker may report that a round has timed out, once its time is over. A second copy gets the same answer. If the time of
// the task is over, the server expires it; a report that comes too early is a failure.
func TestReportsOfTimeouts(t *testing.T) {
	s := newSite(t, Options{})
	for name, c := range map[string]struct {
		definition string
		began      float64 // seconds ago
		want       task.State
		text       string
	}{
		"over":               {`"timeout":60`, 60.5, task.TimedOut, "timed out: it ran for longer than 60 s, and printed nothing to stderr"},
		"over, and reopened": {`"timeout":60,"max_timeouts":1`, 61, task.Open, "timed out"},
		"a faster clock":     {`"timeout":60`, 59.5, task.TimedOut, "timed out"},
		"too early":          {`"timeout":60`, 1, task.Failed, "the worker says that the round has timed out, but it had more time"},
		"no timeout":         {`"max_fails":0`, 100, task.Failed, "it had more time"},
		"end_before":         {`"end_before":"2030-01-01T00:00:00Z"`, 100, task.Open, ""},
	} {
		s.TB = t
		s.as(access.Operator, 201, "POST", base+"/tasks", `{"program":"p",`+c.definition+`}`)
		w := s.begin(s.tokens[access.Worker], fmt.Sprintf("w%d", len(s.all())), "")
		one := w.one()
		now := expect.Result(s.hand().Now(t.Context())).Value(t)
		key := fmt.Sprintf("%s:task:%d", s.cfg.Namespace, one.ID)
		expect.NoError(t, s.redis.HSet(t.Context(), key, "0:running", now.Add(task.Seconds(-c.began)).String()).Err())
		if name == "end_before" {
			expect.NoError(t, s.redis.HSet(t.Context(), key, "end_before", now.String()).Err())
		}
		first := w.report(one, `"action":"time_out","stdout":"half"`)
		expect.True(t, first.Accepted, name, first)
		again := (&remoteWorker{s.another(), w.token, w.session}).report(one, `"action":"time_out","stdout":"half"`)
		expect.True(t, again.Accepted, name, again)
		expect.Equal(t, again.Detail != "", first.Detail != "", name)
		got := s.task(one.ID)
		expect.Equal(t, got.State, c.want, name)
		expect.Contains(t, got.RoundNumber(0).Error, c.text, name)
		if c.text != "" {
			expect.Equal(t, got.RoundNumber(0).Output, "half", name)
		}
		s.as(access.Operator, 200, "POST", base+"/tasks/actions", fmt.Sprintf(`{"action":"cancel","ids":[%d]}`, one.ID))
	}
}

// all returns all tasks.
func (s *site) all() (all []*manager.Task) {
	s.Helper()
	for one, err := range s.manager.List(s.Context(), manager.Query{}) {
		expect.NoError(s, err)
		all = append(all, one)
	}
	return all
}

// The tasks that follow belong to the owner of their task, and reach nothing of others. A round that has failed opens none, and neither does a report with too many.
func TestReportsThatMayNotOpenTasks(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(1)...)
	w := s.worker()
	w.report(w.one(), `"action":"complete"`)
	s.settle()
	for _, open := range []string{
		`[{"after":{"tasks":[1]}}]`, `[{"campaign":"other"}]`, `[{"unique":"u"}]`, `[{"queue":"q"}]`, `[{"after":{"group":"g"}}]`, `[{"after":{"places":[0]}}]`, `[{"after":{"places":[7]}}]`,
		"[" + strings.Repeat(`{"input":"x"},`, task.MaxFollowing) + `{"input":"x"}]`,
	} {
		s.as(access.Submitter, 201, "POST", base+"/tasks", `{"program":"p"}`)
		before := len(s.all())
		answer := w.report(w.one(), `"action":"complete","open":`+open)
		expect.True(t, answer.Accepted, open[:min(len(open), 60)], answer)
		expect.Contains(t, answer.Detail, "its new tasks could not be opened")
		expect.Len(t, s.all(), before)
	}
	s.as(access.Submitter, 201, "POST", base+"/tasks", `{"program":"p"}`)
	before := len(s.all())
	answer := w.report(w.one(), `"action":"complete","exit":1,"stderr":"x","open":[{}]`)
	expect.True(t, answer.Accepted, "a failed round opens nothing", answer)
	expect.Len(t, s.all(), before)
	s.as(access.Submitter, 201, "POST", base+"/tasks", `{"program":"p"}`)
	answer = w.report(w.one(), `"action":"complete","open":[{"owner":"operator","input":"mine"}]`)
	all := s.all()
	expect.True(t, answer.Accepted, answer, all[0].Owner)
	expect.MustEqual(t, all[0].Owner, "submitter")
	expect.Equal(t, all[0].Input, "mine")
}

// A worker's token opens nothing that its queues and the task do not lead to, also if the task belongs to nobody: no other program, campaign or queue, and
// no task that reads the outputs of others. An operator's token may. A namespace can forbid all rounds to open tasks.
func TestReportsOpenOnlyWhatTheirTokenMay(t *testing.T) {
	s := newSite(t, Options{})
	s.open(manager.Definition{Program: "secret", Queue: "other"}, manager.Definition{Program: "p", Group: "g", Queue: "other", Unique: "key"})
	w := s.begin(s.token(access.Token{Name: "q1", Role: access.Worker, Queues: []string{"q", "q2"}}), "w", "")
	operator := s.begin(s.tokens[access.Operator], "w", `,"queues":["q"]`)
	two := 2
	s.open(manager.Definition{Program: "command", Source: "exec:/", Input: "true", Queue: "q"}) // the input is the program
	commands := s.begin(w.token, "commands", `,"sources":true`)
	answer := commands.report(commands.one(), `"action":"complete","open":[{"input":"evil"}]`)
	expect.Contains(t, answer.Detail, "the program of \"exec:/\" is the input")
	for _, group := range []string{"g", ""} {
		for open, why := range map[string]string{
			`{"queue":"other"}`: "only for the queues", `{"program":"evil"}`: "program", `{"source":"rsync:/evil/run.sh"}`: "source", `{"campaign":"other"}`: "campaign",
			`{"after":{"tasks":[1]}}`: "task 1", `{"after_any":{"tasks":[1]}}`: "task 1", `{"after":{"tasks":[99]}}`: "task 99", `{"after":{"group":"h"}}`: "campaign",
			`{"unique":"key"},{"after":{"places":[0]}}`: "unique",
			`{"priority":3}`: "at most their own priority 2", `{"limit_key":"key"}`: "limit key",
		} {
			s.open(manager.Definition{Program: "p", Queue: "q", Group: group, Priority: &two})
			before := len(s.all())
			answer := w.report(w.one(), `"action":"complete","open":[`+open+`]`)
			expect.Contains(t, answer.Detail, why, open)
			expect.Len(t, s.all(), before, open)
		}
	}
	open := func(w *remoteWorker, open string, n int) broker.Reported {
		s.open(manager.Definition{Program: "p", Queue: "q", Group: "g"})
		before := len(s.all())
		one := w.one()
		answer := w.report(one, `"action":"complete","open":[`+strings.ReplaceAll(open, "OWN", fmt.Sprint(one.ID))+`]`)
		expect.Len(t, s.all(), before+n, open, answer)
		return answer
	}
	open(w, `{"after":{"tasks":[2,OWN]},"queue":"q2","priority":-1},{"unique":"g/key","limit_key":"g/host"},{"after":{"places":[0]},"queue":"q2"}`, 3)
	w.report(w.one(), `"action":"complete"`)
	open(operator, `{"program":"other","queue":"other","after":{"tasks":[1]}}`, 1)
	expect.NoError(t, s.admin.ChangeSetting(t.Context(), task.SettingRoundsOpen, "no"))
	expect.Contains(t, open(operator, `{"input":"x"}`, 0).Detail, "rounds_open of the namespace is no")
}

// A checkpoint, the error of the round before, and the results of the tasks that a task has waited for reach the next worker.
func TestWhatALaterRoundGets(t *testing.T) {
	s := newSite(t, Options{})
	two := 2
	s.open(manager.Definition{Program: "p", MaxFails: &two})
	w := s.worker()
	one := w.one()
	w.post(200, "renewals", "{"+of(one)+`,"checkpoint_base64":"/wA="}`)
	w.report(one, `"action":"fail","error":"first"`)
	s.settle()
	one = w.one()
	expect.Equal(t, one.Round, 1)
	expect.Equal(t, string(one.CheckpointBase64), "\xff\x00")
	expect.Equal(t, *one.LastError, "first")
	got := s.call(w.token, "GET", fmt.Sprintf("%s/work/%s/after?id=1&round=1&claim=%s", base, w.session, one.Claim), "")
	expect.Equal(t, got.StatusCode, 200)
	expect.Equal(t, got.text, "")
	w.report(one, `"action":"complete"`)
	got = s.call(w.token, "GET", fmt.Sprintf("%s/work/%s/after?id=1&round=1&claim=%s", base, w.session, one.Claim), "")
	expect.True(t, got.StatusCode == 409, got.StatusCode, got.text)
}

// One call reports a thousand rounds.
func TestReportsInBulk(t *testing.T) {
	s := newSite(t, Options{})
	const n = 1000
	s.open(handled(n)...)
	w := s.worker()
	lines := ""
	for len(lines) == 0 || strings.Count(lines, "\n") < n {
		for _, one := range w.claim(`{"most":100}`).Tasks {
			lines += "{" + of(one) + `,"action":"complete","result":1}` + "\n"
		}
	}
	for range 2 {
		text := s.call(w.token, "POST", base+"/work/"+w.session+"/reports", lines, "Content-Type: "+jsonLines).text
		expect.True(t, strings.Count(text, `"accepted":true`) == n, text[:min(len(text), 500)])
		s.settle()
	}
}
