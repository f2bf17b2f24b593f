package web

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// token adds a token, and returns its text.
func (s *site) token(t access.Token) string {
	s.Helper()
	return webtest.AddToken(s, s.manager, t)
}

// refused makes calls that must fail with a status, and change nothing.
func (w *remoteWorker) refused(status int, what string, bodies ...string) {
	w.Helper()
	before := w.world()
	for _, body := range bodies {
		text := w.post(status, what, body)
		expect.True(w, len(text) <= 2000, what, len(text), "bytes")
	}
	expect.Equal(w, cmp.Diff(before, w.world()), "", "refused calls of", what, "have changed something")
}

// A name belongs to one living worker, and the names of a token to the token. A second start is refused, and says where the first one is.
func TestNamesOfWorkers(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(2)...)
	other := s.token(access.Token{Name: "other", Role: access.Worker})
	w := s.begin(s.tokens[access.Worker], "w", `,"host":"first.example","pid":7`)
	one := w.one()
	got := s.call(w.token, "POST", base+"/work", `{"name":"w"}`)
	expect.Equal(t, got.StatusCode, 409)
	expect.Contains(t, got.text, `"code":"taken"`)
	expect.Contains(t, got.text, "first.example")
	expect.Equal(t, got.Header.Get("Retry-After"), "", "of a living worker")
	store := managing.Of(s.manager).Store
	now := expect.Result(store.Now(t.Context())).Value(t)
	expect.NoError(t, store.Presence.SetGrace(t.Context(), rules.Grace{Running: now.Add(1e6)}))
	seen := func(at task.Time) {
		expect.NoError(t, store.Conn.Redis.HSet(t.Context(), store.Keys.Worker("worker/w"), "seen", at.String()).Err())
	}
	seen(now.Add(-1e6))
	got = s.call(w.token, "POST", base+"/work", `{"name":"w"}`)
	expect.Equal(t, got.StatusCode, 409)
	expect.NotEqual(t, got.Header.Get("Retry-After"), "", "in a grace period")
	expect.NoError(t, store.Presence.SetGrace(t.Context(), rules.Grace{}))
	seen(now)
	expect.True(t, s.begin(other, "w", "").session != w.session, "another token has names of its own")
	for range 2 { // a registration can be repeated with its key
		a := s.call(other, "POST", base+"/work", `{"name":"k"}`, "Idempotency-Key: k")
		b := s.call(other, "POST", base+"/work", `{"name":"k"}`, "Idempotency-Key: k")
		expect.Equal(t, a.StatusCode, 200)
		expect.Equal(t, a.text, b.text)
	}
	expect.True(t, s.call(other, "POST", base+"/work", `{"name":"k"}`, "Idempotency-Key: l").StatusCode == 409, "another key is another start")

	expect.True(t, s.call(w.token, "DELETE", base+"/work/"+w.session, "").StatusCode == 204, "sign off")
	expect.True(t, s.call(w.token, "DELETE", base+"/work/"+w.session, "").StatusCode == 204, "sign off again")
	w.refused(410, "claims", "{}")
	w.refused(410, "heartbeat", "{}")
	// A call that ended before it had given up the claims of the first start is repeated.
	boot := strings.TrimPrefix(broker.SessionFor(&access.Token{Name: "worker"}, "w", "second"), "w.")
	_, _, err := managing.Of(s.manager).Store.Presence.Register(t.Context(), presence.WorkerInfo{Name: "worker/w", Boot: boot, Lease: 60})
	expect.NoError(t, err)
	got = s.call(w.token, "POST", base+"/work", `{"name":"w"}`, "Idempotency-Key: second")
	second := webtest.Decode[broker.Registered](t, got.text)
	expect.Equal(t, second.Lost, 1)
	expect.NotEqual(t, second.Session, w.session)
	expect.Equal(t, second.Worker, "worker/w")
	w.refused(409, "claims", "{}")
	w.refused(409, "renewals", "{"+of(one)+"}")
	v := &remoteWorker{s, w.token, second.Session}
	expect.True(t, v.one().ID == 2, "the second start works")
	v.refused(403, "reports", "{"+of(one)+`,"action":"complete"}`) // each session has its own claims
}

// No token can use the sessions and claims of another one, and no worker those of another worker.
func TestForeignClaims(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(3)...)
	a := s.worker()
	one := a.one()
	thief := s.token(access.Token{Name: "thief", Role: access.Worker})
	b := s.begin(thief, "w", "")
	sibling := s.begin(a.token, "w2", "")
	stolen := &remoteWorker{s, thief, a.session}
	own := b.one()
	stolen.refused(409, "claims", "{}", `{"number":1}`)
	stolen.refused(409, "heartbeat", "{}")
	for _, w := range []*remoteWorker{b, sibling, stolen} {
		run := of(one)
		w.refused(403, "reports", "{"+run+`,"action":"complete"}`, "{"+run+`,"action":"release"}`, "{"+run+`,"action":"complete","open":[{"program":"evil"}]}`)
		w.refused(403, "renewals", "{"+run+"}", "{"+run+`,"checkpoint":"evil"}`)
		got := s.call(w.token, "GET", fmt.Sprintf("%s/work/%s/after?id=%d&round=0&claim=%s", base, w.session, one.ID, one.Claim), "")
		expect.True(t, got.StatusCode == 403, got.StatusCode, got.text)
	}
	mixed := "[{" + of(own) + `,"action":"complete"},{` + of(one) + `,"action":"complete"}]`
	b.refused(403, "reports", mixed)
	moved := own
	moved.Round = 1
	expect.True(t, !b.report(moved, `"action":"complete"`).Accepted, "an own claim in another round")
	for _, claim := range []string{"", "x", "~", ".", "~.", "1~.1", strings.Repeat("~", 100), own.Claim + "x" + "~", strings.ToLower(own.Claim)} {
		forged := own
		forged.Claim = claim
		b.refused(403, "reports", "{"+of(forged)+`,"action":"complete"}`)
	}
	for _, session := range []string{"w", "w.", ".", "w2." + strings.Repeat("A", 26), "nobody." + strings.Repeat("A", 26), strings.Repeat("w", 200), "%00", "a%2Fw." + strings.Repeat("A", 26)} {
		expect.OneOf(t, s.call(thief, "POST", base+"/work/"+session+"/claims", "{}").StatusCode, 404, 422)
	}
	expect.Equal(t, s.task(1).State, task.Running, "both tasks run")
	expect.Equal(t, s.task(2).State, task.Running, "both tasks run")
}

// claimRoutes has the bodies or queries with which each route for workers names a claim; nil for a route that names none.
var claimRoutes = map[string][]string{
	"register-worker": nil, "sign-off-worker": nil, "send-heartbeat": nil, "claim-tasks": nil,
	"renew-claims":     {`{$run}`, `{$run,"checkpoint":"x","progress":{"fraction":1},"updates":["x"],"updates_from":1}`},
	"get-dependencies": {`?$query`},
	"get-program":      {`?$query`},
	"report-rounds": {
		`{$run,"action":"complete"}`, `{$run,"action":"complete","exit":1,"files":"YQ=="}`, `{$run,"action":"release"}`, `{$run,"action":"fail"}`,
		`{$run,"action":"fail","unfit":true}`, `{$run,"action":"fail","later":1}`, `{$run,"action":"complete","open":[{"program":"evil"}]}`,
	},
}

// For a forged claim, or a true one of another task, each route answers the same of every task, and does nothing: whether the task runs elsewhere,
// waits, has finished in any way, was archived, or does not exist.
func TestForgedClaimsSayNothing(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(8)...)
	victim := s.worker()
	var ids []int64
	for _, end := range []string{
		`"action":"complete","stdout":"out"`, `"action":"fail","permanent":true`, `"action":"release","error":"x"`, `"action":"complete","files":"YQ=="`, "",
	} {
		one := victim.one()
		if ids = append(ids, one.ID); end != "" {
			expect.MustTrue(t, victim.report(one, end).Accepted)
		}
	}
	expect.Result(s.manager.Cancel(t.Context(), manager.Ref{ID: 7, Round: 0})).OK(t)
	b := s.begin(s.token(access.Token{Name: "thief", Role: access.Worker}), "w", "")
	own := b.one()
	ids = append(ids, 7, 8, 99)
	expect.NotContains(t, fmt.Sprint(ids), fmt.Sprint(own.ID))
	before := s.world()
	for _, r := range s.routes {
		texts, listed := claimRoutes[r.id]
		if r.need.Name != toWork.Name {
			continue
		}
		expect.MustTrue(t, listed, r.id, "needs a row in claimRoutes")
		for _, text := range texts {
			for _, claim := range []string{own.Claim, own.Claim[:strings.LastIndexByte(own.Claim, '.')] + ".77"} {
				b.answersAlike(r, text, fmt.Sprintf(`"id":$id,"round":0,"claim":%q`, claim), ids)
				b.answersAlike(r, text, fmt.Sprintf(`"id":$id,"round":1,"claim":%q`, claim), ids)
			}
		}
	}
	expect.Equal(t, cmp.Diff(before, s.world()), "", "the calls have changed something")
	expect.True(t, b.report(own, `"action":"complete"`).Accepted, "the own task")
}

// answersAlike makes calls that name a run together with each of the tasks.
func (w *remoteWorker) answersAlike(r route, text, run string, ids []int64) {
	w.Helper()
	path := strings.NewReplacer("{session}", w.session, "{sha256}", strings.Repeat("0", 64)).Replace(base + r.path)
	query := strings.NewReplacer(`"`, "", ":", "=", ",", "&").Replace(run)
	answers := map[string]int64{}
	for _, n := range ids {
		id := fmt.Sprint(n)
		call := strings.NewReplacer("$run", strings.ReplaceAll(run, "$id", id), "$query", strings.ReplaceAll(query, "$id", id), "$id", id).Replace(text)
		at, body := path, call
		if r.method == "GET" {
			at, body = path+call, ""
		}
		got := w.call(w.token, r.method, at, body, "X-Correlation-Id: same")
		answers[strings.NewReplacer("task "+id, "task ID", `"id":`+id, `"id":ID`).Replace(fmt.Sprint(got.StatusCode, got.Header, got.text))] = n
	}
	expect.Len(w, answers, 1, r.id, text, run)
}

// A token for some queues claims only from these queues, whatever the worker asks for, and whatever an earlier token of the name was for.
func TestQueuesOfWorkers(t *testing.T) {
	s := newSite(t, Options{})
	s.open(manager.Definition{Program: "p"}, manager.Definition{Program: "p", Queue: "a"}, manager.Definition{Program: "p", Queue: "b"})
	token := s.token(access.Token{Name: "q", Role: access.Worker, Queues: []string{"a"}})
	for _, queues := range []string{`["default"]`, `["b"]`, `["a","b:2"]`, `["a:2","default:1"]`} {
		got := s.call(token, "POST", base+"/work", `{"name":"w","queues":`+queues+`}`)
		expect.True(t, got.StatusCode == 403, queues, got.StatusCode, got.text)
	}
	w := s.begin(token, "w", "")
	got := w.claim(`{"most":9}`).Tasks
	expect.MustLen(t, got, 1)
	expect.Equal(t, got[0].ID, 2)
	expect.NoError(t, s.admin.RemoveToken(t.Context(), "q"))
	w.token = s.token(access.Token{Name: "q", Role: access.Worker, Queues: []string{"c"}})
	w.post(403, "claims", "{}") // notes the first use of the token
	w.refused(403, "claims", "{}")
}

// Whatever a worker says, it is refused before anything changes, or it is bounded.
func TestHostileRegistrations(t *testing.T) {
	s := newSite(t, Options{})
	before := s.world()
	for _, body := range []string{
		"", "{}", "[]", "null", `"w"`, `{"name":""}`, `{"name":"a/b"}`, `{"name":"../x"}`, `{"name":".x"}`, `{"name":"a b"}`, `{"name":"a\u0000"}`, `{"name":"ä"}`,
		`{"name":"` + strings.Repeat("w", 101) + `"}`, `{"name":"w","lease":-1}`, `{"name":"w","lease":0.001}`, `{"name":"w","lease":301}`, `{"name":"w","lease":1e308}`,
		`{"name":"w","lease":1e999}`, `{"name":"w","lease":"inf"}`, `{"name":"w","lease":"NaN"}`, `{"name":"w","slots":-1}`, `{"name":"w","slots":1000000000}`,
		`{"name":"w","slots":99999999999999999999}`, `{"name":"w","pid":-1}`, `{"name":"w","host":"a\nb"}`, `{"name":"w","host":"` + strings.Repeat("h", 300) + `"}`,
		`{"name":"w","queues":["a b"]}`, `{"name":"w","queues":["a","a"]}`, `{"name":"w","queues":["a:0"]}`, `{"name":"w","queues":["a:1e9"]}`, `{"name":"w","tags":["a,b"]}`,
		`{"name":"w","tags":[` + strings.Repeat(`"t",`, 256) + `"t"]}`, `{"name":"w","programs":[""]}`, `{"name":"w","programs":["a\nb"]}`, `{"name":"w","programs":["a"],"sources":true}`,
		`{"name":"w","queues":[` + strings.Repeat(`"q",`, 100) + `"q"]}`, `{"name":"w","programs":[` + strings.Repeat(`"q",`, 1000) + `"q"]}`, `{"name":"w","state":"gone"}`,
		strings.Repeat("[", 100_000), `{"name":` + strings.Repeat(`{"a":`, 100_000),
	} {
		got := s.call(s.tokens[access.Worker], "POST", base+"/work", body)
		expect.OneOf(t, got.StatusCode, 422, 400)
		expect.Compare(t, len(got.text), "<", 2000)
	}
	expect.True(t, cmp.Diff(before, s.world()) == "", "the calls have changed something")
}

func TestHostileClaims(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(150)...)
	w := s.worker()
	w.refused(422, "claims", `{"most":1000000000}`, `{"prefetch":-1}`, `{"prefetch":101}`, `{"most":99,"prefetch":2}`, `{"prefetch":9223372036854775807}`, `{"prefetch":0.5}`, `{"reports":[{}]}`, `{"reports":{}}`, `{"most":101}`, `{"most":-1}`, `{"most":1.5}`, `{"wait":-1}`, `{"time_left":-1}`, `{"time_left":1e300}`, `{"time_left":"inf"}`, `{"wait":61}`, `{"wait":"inf"}`, `{"wait":1e999}`, `{"wait":1e308}`, `{"number":-1}`,
		`{"number":800000001}`, `{"number":9223372036854775807}`, `{"number":1.5}`, `{"lease":1}`, "[]", `{"most":`, strings.Repeat("[", 100_000))
	n := len(w.claim(`{"most":100,"number":800000000}`).Tasks) // fewer than 100 if Redis has no time for all of them
	expect.Compare(t, n, ">", 0)
	expect.Compare(t, n, "<=", 100)
	w.post(409, "claims", `{"number":1}`)
}

func TestHostileRenewals(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(1)...)
	w := s.worker()
	run := of(w.one())
	w.refused(422, "renewals", "[]", "{}x", "[{"+run+"},{"+run+"}]", "{"+run+`,"progress":{"fraction":2}}`, "{"+run+`,"progress":{"fraction":-1}}`, "{"+run+`,"progress":{"fraction":1e999}}`,
		"{"+run+`,"updates":["x"]}`, "{"+run+`,"updates":["x"],"updates_from":-1}`, "{"+run+`,"updates":["x"],"updates_from":1001}`, "{"+run+`,"updates":["x\ny"],"updates_from":1}`,
		"{"+run+`,"updates":["`+strings.Repeat("x", 1025)+`"],"updates_from":1}`, "{"+run+`,"updates":[`+strings.Repeat(`"x",`, 1000)+`"x"],"updates_from":1}`,
		"{"+run+`,"checkpoint":"`+strings.Repeat("x", 1<<20+1)+`"}`, "{"+run+`,"checkpoint":"a","checkpoint_base64":"YQ=="}`, "{"+run+`,"lease":1e9}`, "{"+run+`,"checkpoint_base64":"?"}`)
	w.refused(403, "renewals", `{"id":1,"round":0,"claim":"x"}`, "{}")
	w.post(413, "renewals", `{"checkpoint":"`+strings.Repeat("x", 65<<20)+`"}`)
}

func TestHostileReports(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(1)...)
	w := s.worker()
	one := w.one()
	run := of(one)
	var bodies []string
	for _, members := range []string{
		"", `,"action":"steal"`, `,"action":"complete","exit":-1`, `,"action":"complete","exit":256`, `,"action":"complete","exit":"0"`, `,"action":"complete","later":1`, `,"action":"complete","unstarted":true`, `,"action":"fail","later":-1`,
		`,"action":"fail","later":1e999`, `,"action":"fail","later":1e300`, `,"action":"fail","later":1,"permanent":true`, `,"action":"fail","unfit":true,"permanent":true`, `,"action":"release","open":[{}]`,
		`,"action":"fail","open":[{}]`, `,"action":"complete","seconds":-1`, `,"action":"complete","max_rss":-1`, `,"action":"complete","stdout_bytes":-1`, `,"action":"complete","files":"YQ==","files_kept":"x"`, `,"action":"complete","stdout":"a","stdout_base64":"YQ=="`, `,"action":"complete","error":"x"`,
		`,"action":"complete","open":[{"programme":"p"}]`, `,"action":"complete","open":[{"max_fails":-1}]`, `,"action":"complete","open":1`, `,"action":"complete","worker":"x"`, `,"action":"complete","stdout_base64":"?"`,
	} {
		bodies = append(bodies, "{"+run+members+"}")
	}
	bodies = append(bodies, "[]", "null", `{"action":"complete"`, "[{"+run+`,"action":"complete"},{`+run+`,"action":"complete"}]`, strings.Repeat("[", 100_000),
		"{"+run+`,"action":"complete","result":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+"}")
	w.refused(422, "reports", bodies...)
	w.refused(403, "reports", `{"action":"complete"}`, `{"id":1,"round":0,"claim":"x","action":"complete"}`)
	w.post(413, "reports", `{"stdout":"`+strings.Repeat("x", 65<<20)+`"}`)
	expect.True(t, w.report(one, `"action":"complete"`).Accepted, "the task can still be reported")
}

// Outputs are cut at their limit, as those of other workers, and may be any bytes.
func TestLargeAndBinaryOutputs(t *testing.T) {
	s := newSite(t, Options{})
	s.open(handled(3)...)
	w := s.worker()
	expect.True(t, w.report(w.one(), `"action":"complete","stdout":"a`+strings.Repeat("x", 5<<20)+`z"`).Accepted, "a large output")
	r := s.task(1).LastRun()
	expect.MustTrue(t, len(r.Output) < 1<<20+200, len(r.Output), r.OutputBytes)
	expect.Equal(t, r.Output[0], 'a')
	expect.True(t, strings.HasSuffix(r.Output, "z"), len(r.Output), r.OutputBytes)
	expect.Contains(t, r.Output, "bytes are left out here")
	expect.Equal(t, r.OutputBytes, 5<<20+2)
	bytes := "\x00\xff\xfe\r\n"
	text := base64.StdEncoding.EncodeToString([]byte(bytes))
	expect.True(t, w.report(w.one(), `"action":"fail","stdout_base64":"`+text+`","stderr_base64":"`+text+`"`).Accepted, "binary outputs")
	r = s.task(2).LastRun()
	expect.Equal(t, r.Output, bytes)
	expect.True(t, strings.HasPrefix(r.Error, bytes), r)
	expect.True(t, strings.HasSuffix(r.Error, "the worker gave no reason"), r)
	cut := strings.Repeat("x", 1<<20) + "[the rest is on the worker]"
	expect.True(t, w.report(w.one(), `"action":"complete","stdout":"`+cut+`","stdout_bytes":3000000`).Accepted, "what the worker has cut")
	r = s.task(3).LastRun()
	expect.Equal(t, r.Output, cut)
	expect.Equal(t, r.OutputBytes, 3000000)
}

// A text that is not UTF-8 reaches the worker byte for byte, and an invalid task is not handed out.
func TestInputsOfAnyBytes(t *testing.T) {
	s := newSite(t, Options{})
	s.open(manager.Definition{Program: "p", Input: "\xff\xfe x", Meta: "\xff"}, manager.Definition{Program: "p"}, manager.Definition{Program: "p", Input: "plain"})
	expect.NoError(t, s.redis.HSet(t.Context(), s.cfg.Namespace+":task:2", "input", "a 'b").Err()) // as another program may write it
	w := s.worker()
	got := w.claim(`{"most":9}`).Tasks
	expect.MustLen(t, got, 2)
	expect.MustEqual(t, got[0].Input, nil)
	expect.MustEqual(t, string(got[0].InputBase64), "\xff\xfe x")
	expect.MustEqual(t, string(got[0].MetaBase64), "\xff")
	expect.Equal(t, *got[1].Input, "plain")
	broken := s.task(2)
	expect.Equal(t, broken.State, task.Executed)
	expect.Contains(t, broken.LastRun().Error, "quote")
	s.open(testspace.Define("p", "", "again"))
	again := w.claim(`{"base64":true}`).Tasks
	expect.MustLen(t, again, 1)
	expect.MustEqual(t, again[0].Input, nil)
	expect.Equal(t, string(again[0].InputBase64), "again")
}

// Calls that are refused keep no Idempotency-Key, and a token can register only so many bytes.
func TestRefusedCallsKeepNothing(t *testing.T) {
	s := newSite(t, Options{})
	s.open(manager.Definition{Program: "p", Group: "g"})
	expect.NoError(t, s.manager.CloseGroup(t.Context(), "g"))
	keys := func() []string {
		return expect.Result(s.redis.Keys(t.Context(), s.cfg.Namespace+":calls:once-*").Result()).Value(t)
	}
	for body, status := range map[string]int{
		`{"program":"p","source":"redis:` + strings.Repeat("0", 64) + `"}`: 404, `{"program":"p","campaign":"g"}`: 409,
		`{"program":"p","after":{"tasks":[99]}}`: 422, `{"program":"p","max_fails":-1}`: 422,
	} {
		s.as(access.Operator, status, "POST", base+"/tasks", body, "Idempotency-Key: "+fmt.Sprint(len(body)))
		expect.Len(t, keys(), 0, body)
	}
	first := s.as(access.Operator, 201, "POST", base+"/tasks", plain, "Idempotency-Key: k").text
	expect.Equal(t, s.as(access.Operator, 201, "POST", base+"/tasks", plain, "Idempotency-Key: k").text, first)
	expect.Len(t, keys(), 1)

	programs := strings.Repeat(`"`+strings.Repeat("p", 199)+`",`, 999) + `"p"`
	n := 0
	for ; s.call(s.tokens[access.Worker], "POST", base+"/work", fmt.Sprintf(`{"name":"w%d","programs":[%s]}`, n, programs)).StatusCode == 200; n++ {
		expect.MustTrue(t, n < 100, "registrations of 200 KB")
	}
	w := s.worker()
	w.post(200, "heartbeat", `{"runs":[`+strings.Repeat("1,", 9999)+`1]}`)
	got := expect.Result(s.redis.HGet(t.Context(), s.cfg.Namespace+":worker:worker/w", "runs").Result()).Value(t)
	expect.Compare(t, len(got), "<", 1000, "bytes of runs")
}
