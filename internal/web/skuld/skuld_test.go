package skuld_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/internal/web/skuld"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// A site serves Skuld below /skuld, with a token for each role. Its server makes rounds only when the test says so.
type site struct {
	*testing.T
	handler http.Handler
	tokens  map[access.Role]string
	manager *manager.Manager
	server  *server.Server
}

func newSite(t *testing.T) *site { return newSiteOn(t, redistest.Shared(t), time.Hour) }

func newSiteOn(t *testing.T, addr string, timeout time.Duration) *site {
	t.Helper()
	t.Parallel()
	cfg := testspace.Config(t, addr)
	cfg.Redis.Replicas.Timeout = time.Minute // as long as it may be
	m := testspace.Manager(t, cfg)
	s := &site{T: t, manager: m, tokens: webtest.Tokens(t, m)}
	s.handler = web.New(m, web.Options{Interfaces: []wire.Interface{skuld.New("/skuld", m)}, Timeout: timeout, Log: testspace.Silent})
	s.server = server.New("server", expect.Result(config.DefaultServer(cfg.Namespace)).Value(t), testspace.Connect(t, cfg), testspace.Silent)
	return s
}

// call makes a call as a client does with curl, and returns the status and the answer.
func (s *site) call(token, path, body string) (int, map[string]any) {
	s.Helper()
	w := s.request(token, http.MethodPost, path, body)
	answer := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	d.UseNumber()
	expect.NoError(s, d.Decode(&answer), path, w.Body.String())
	return w.Code, answer
}

func (s *site) request(token, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, webtest.Call(s.Context(), token, method, "/skuld"+path, body))
	return w
}

// do makes a call of the operator, which must succeed.
func (s *site) do(path, body string) map[string]any {
	s.Helper()
	status, answer := s.call(s.tokens[access.Operator], path, body)
	expect.MustTrue(s, status == 200, path, body, status, answer)
	return answer
}

// fails checks that a call of the operator has a status, and a text in its answer.
func (s *site) fails(status int, text, path, body string) {
	s.Helper()
	got, answer := s.call(s.tokens[access.Operator], path, body)
	expect.Equal(s, got, status, path, body)
	expect.Contains(s, fmt.Sprint(answer), text, path, body, status)
}

func (s *site) enqueue(one string) string {
	s.Helper()
	return s.do("/enqueue", `{"task":{`+one+`}}`)["id"].(string)
}

// claim returns the id of a task that it claims for a minute, and its number of claims; "" if there is none.
func (s *site) claim(queue string) (string, int) {
	s.Helper()
	one, _ := s.do("/claim", `{"queue":"`+queue+`","dt":60000}`)["task"].(map[string]any)
	if one == nil {
		return "", 0
	}
	return one["id"].(string), len(one["claims"].([]any))
}

func (s *site) task(id string) map[string]any {
	s.Helper()
	return s.do("/get_task", `{"id":"`+id+`"}`)["task"].(map[string]any)
}

func claimsOf(one map[string]any) (all []map[string]any) {
	for _, c := range one["claims"].([]any) {
		all = append(all, c.(map[string]any))
	}
	return all
}

func (s *site) stored(id string) *task.Task {
	s.Helper()
	st := managing.Of(s.manager).Store
	number := expect.Result(st.Holder(s.Context(), "skuld:"+id)).Value(s)
	return testspace.Read(s, st, number)
}

// expire ends the lease of a task's claim, as time does, and lets the server see it.
func (s *site) expire(id string) {
	s.Helper()
	t := s.stored(id)
	expect.Result(managing.Of(s.manager).Store.Renew(s.Context(), 0, redisstate.LeaseRenewal{ID: t.ID, Round: t.Round, Claim: t.Current().Claim})).OK(s)
	expect.Eventually(s, "the claim has ended", func() bool {
		expect.Result(s.server.RunOnce(s.Context())).OK(s)
		return s.stored(id).State != task.Running
	})
}

// The session of Skuld's own README, as calls over HTTP.
func TestReadme(t *testing.T) {
	s := newSite(t)
	expect.Equal(t, fmt.Sprint(s.do("/count_tasks", "")["count"]), "0")
	id := s.enqueue(`"queue":"general","data":"sup?"`)
	expect.MustLen(t, id, 40)
	expect.Equal(t, fmt.Sprint(s.do("/count_tasks", `{}`)["count"]), "1")
	list := s.do("/list_tasks", `{}`)["tasks"].([]any)
	expect.MustLen(t, list, 1)
	expect.Equal(t, fmt.Sprint(list[0]), fmt.Sprintf("map[claims:[] data:sup? id:%s priority:0 queue:general state:open]", id))

	one := s.do("/claim", `{"queue":"general","dt":10000}`)["task"].(map[string]any)
	claims := claimsOf(one)
	expect.MustEqual[any](t, one["data"], "sup?")
	expect.MustEqual[any](t, one["id"], id)
	expect.MustLen(t, claims, 1)
	expect.MustEqual(t, claims[0]["completed"], nil)
	start, end := number(claims[0]["start"]), number(claims[0]["end"])
	expect.Equal(t, end-start, 10_000, start, end)
	expect.Compare(t, start, ">", time.Now().Add(-time.Hour).UnixMilli(), end)
	expect.True(t, s.do("/claim", `{"queue":"general","dt":10000}`)["task"] == nil, "a second claim")

	s.expire(id)
	again, n := s.claim("general")
	expect.Equal(t, again, id, n)
	expect.Equal(t, n, 2, again)
	s.do("/complete", `{"task":"`+id+`","claim":1}`)
	claims = claimsOf(s.task(id))
	expect.MustLen(t, claims, 2)
	expect.MustEqual(t, claims[0]["completed"], nil)
	expect.MustTrue(t, number(claims[0]["end"]) > 0, claims)
	expect.Compare(t, number(claims[1]["completed"]), ">=", number(claims[1]["start"]))
	next, _ := s.claim("general")
	expect.Equal(t, next, "", "a completed task")
	expect.Equal(t, s.stored(id).State, task.Succeeded, "without a round of the server")
}

func number(v any) int64 {
	n, _ := v.(json.Number).Int64()
	return n
}

// A client that repeats a call with its own id has one task, also if the calls come at the same time, and after the task is complete.
// The answer says how many nodes have confirmed a write. A client may ask for more nodes than there are.
func TestW(t *testing.T) {
	primary, replica := redistest.Start(t, redistest.Replicates), redistest.Start(t)
	replica.Follow(primary)
	s := newSiteOn(t, primary.Addr, time.Hour)
	for w, want := range map[string]string{"1": "1", "2": "2", "5": "2", "-1": "1"} {
		answer := s.do("/enqueue", `{"task":{"queue":"q","data":"x"},"w":`+w+`}`)
		expect.Equal(t, fmt.Sprint(answer["w"]), want, w)
		id, _ := s.claim("q")
		answer = s.do("/complete", `{"task":"`+id+`","claim":0,"w":`+w+`}`)
		expect.Equal(t, fmt.Sprint(answer["w"]), want, w)
	}
	replica.Follow(nil)
	expect.Equal(t, fmt.Sprint(s.do("/enqueue", `{"task":{"queue":"q","data":"x"},"w":2}`)["w"]), "1")
}

func TestEnqueueIsIdempotent(t *testing.T) {
	s := newSite(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, answer := s.call(s.tokens[access.Submitter], "/enqueue", `{"task":{"id":"00aa-mine","queue":"q","data":"x"},"w":3}`)
			expect.Equal(t, fmt.Sprint(answer), "map[id:00aa-mine w:1]")
		})
	}
	all.Wait()
	expect.Equal(t, fmt.Sprint(s.do("/count_tasks", "")["count"]), "1")
	s.claim("q")
	s.do("/complete", `{"task":"00aa-mine","claim":0}`)
	expect.Equal(t, s.enqueue(`"id":"00aa-mine","queue":"q","data":"other"`), "00aa-mine")
	expect.Equal(t, s.task("00aa-mine")["data"], "x")
	expect.Equal(t, s.task("00aa-mine")["state"], "succeeded")
	first, second := s.enqueue(``), s.enqueue(``)
	expect.Compare(t, first[:16], "<=", second[:16], first, second)
	expect.NotEqual(t, first, second)
	for _, wrong := range []string{`"id":"a b"`, `"id":"` + strings.Repeat("x", 101) + `"`, `"id":7`, `"priority":2147483648`, `"data":"x","data_base64":"eA=="`, `"queue":"a b"`, `"dependencies":[1]`} {
		s.fails(400, "", "/enqueue", `{"task":{`+wrong+`}}`)
	}
	s.fails(404, "none", "/enqueue", `{"task":{"dependencies":["none"]}}`)
	expect.Equal(t, fmt.Sprint(s.do("/count_tasks", "")["count"]), "3")
}

// The payload is any bytes, and comes back as it was. A worker of TDF gets it as one argument.
func TestData(t *testing.T) {
	s := newSite(t)
	for _, data := range []string{"", "sup?", "it's \"quoted\" $x\n\\", "--base64 eA==", "ä€", " ", `{"a": [1]}`, strings.Repeat("x ", 60_000)} {
		text, _ := json.Marshal(data)
		id := s.enqueue(`"queue":"q","data":` + string(text))
		got, _ := s.task(id)["data"].(string)
		expect.True(t, got == data, data[:min(len(data), 20)], got[:min(len(got), 20)])
		args := expect.Result(task.SplitInput(s.stored(id).Input)).Value(t)
		expect.MustLen(t, args, 1)
		expect.Equal(t, args[0], data)
	}
	for _, data := range []string{"AAEC/w==", "/w=="} { // NUL bytes, or no UTF-8
		expect.Equal(t, s.task(s.enqueue(`"data_base64":"` + data + `"`))["data_base64"], any(data))
	}
	expect.Equal(t, s.task(s.enqueue(`"data_base64":"c3VwPw=="`))["data"], any("sup?"))
	s.fails(400, "at most", "/enqueue", `{"task":{"data":"`+strings.Repeat("x", 200_000)+`"}}`)
}

// Claims take the highest priority first, then the oldest task, of one queue, and only tasks whose dependencies are complete.
func TestOrder(t *testing.T) {
	s := newSite(t)
	old, urgent, young := s.enqueue(`"queue":"q"`), s.enqueue(`"queue":"q","priority":2147483647`), s.enqueue(`"queue":"q"`)
	low, other := s.enqueue(`"queue":"q","priority":-2147483648`), s.enqueue(`"queue":"other"`)
	after := s.enqueue(`"queue":"later","dependencies":["` + old + `","` + urgent + `"]`)
	expect.Result(s.manager.Open(t.Context(), manager.Definition{Program: "of TDF", Queue: "q"})).OK(t)
	expect.Equal(t, fmt.Sprint(s.do("/count_queue", `{"queue":"q"}`)["count"]), "4")
	for _, want := range []string{urgent, old, young, low, ""} {
		got, _ := s.claim("q")
		expect.Equal(t, got, want)
		if want != "" {
			waits, _ := s.claim("later")
			expect.Equal(t, waits, "", "before its dependencies are complete")
			s.do("/complete", `{"task":"`+want+`","claim":0}`)
		}
		if want == old {
			expect.Eventually(t, "the task that waited can be claimed", func() bool {
				expect.Result(s.server.RunOnce(t.Context())).OK(t)
				got, _ := s.claim("later")
				return got == after
			})
			s.do("/complete", `{"task":"`+after+`","claim":0}`)
		}
	}
	expect.Equal(t, fmt.Sprint(s.do("/count_queue", `{"queue":"q"}`)["count"]), "0")
	got, _ := s.claim("other")
	expect.Equal(t, got, other)
	none, _ := s.claim("")
	expect.Equal(t, none, "")
}

// A claim can be renewed again and again, until it is over.
func TestRenew(t *testing.T) {
	s := newSite(t)
	id := s.enqueue(`"queue":"q"`)
	before := claimsOf(s.do("/claim", `{"queue":"q","dt":20000}`)["task"].(map[string]any))[0]
	renew := func(dt int) int64 {
		answer := s.do("/renew", fmt.Sprintf(`{"task":"%s","claim":0,"dt":%d}`, id, dt))
		return number(answer["claim"].(map[string]any)["end"])
	}
	end := renew(300_000)
	expect.True(t, end > number(before["end"])+200_000, end, before)
	expect.True(t, renew(300_000) >= end, "a repeated renewal")
	expect.True(t, renew(1) >= end, "a renewal never shortens a claim")
	s.expire(id)
	s.fails(409, "does not hold", "/renew", `{"task":"`+id+`","claim":0,"dt":1000}`)
	s.fails(404, "no such claim", "/renew", `{"task":"`+id+`","claim":1,"dt":1000}`)
	for _, wrong := range []string{`"claim":0`, `"claim":0,"dt":0`, `"claim":0,"dt":-5`, `"claim":0,"dt":604800001`, `"dt":5`, `"claim":-1,"dt":5`} {
		s.fails(400, "", "/renew", `{"task":"`+id+`",`+wrong+`}`)
	}
	s.fails(400, "dt", "/claim", `{"queue":"q"}`)
}

// The log of a claim has no gaps, keeps its order, and survives repeated calls. The log of an earlier claim stays.
func TestUpdates(t *testing.T) {
	s := newSite(t)
	id := s.enqueue(`"queue":"q"`)
	s.claim("q")
	update := func(claim, seq int, message string) string {
		return fmt.Sprintf(`{"task":"%s","claim":%d,"seq":%d,"message":%s,"w":2}`, id, claim, seq, message)
	}
	s.fails(409, "the next one is 0", "/update", update(0, 1, `"too early"`))
	for seq, message := range []string{`"half done"`, `{"step": 2}`, `"7"`, `"two\nlines"`, `""`, `null`} {
		for range 2 {
			expect.Equal(t, fmt.Sprint(s.do("/update", update(0, seq, message))), "map[w:1]")
		}
	}
	s.fails(409, "another message", "/update", update(0, 0, `"different"`))
	s.fails(409, "the next one is 6", "/update", update(0, 7, `"gap"`))
	s.fails(400, "message", "/update", fmt.Sprintf(`{"task":"%s","claim":0,"seq":6}`, id))
	s.fails(400, "message", "/update", update(0, 6, `"`+strings.Repeat("x", 2000)+`"`))
	s.fails(400, "seq", "/update", update(0, 1000, `1`))
	s.expire(id)
	s.claim("q")
	s.fails(409, "does not hold", "/update", update(0, 6, `"of a claim that is over"`))
	s.do("/update", update(1, 0, `"again"`))
	claims := claimsOf(s.task(id))
	expect.Equal(t, fmt.Sprintf("%q", claims[0]["updates"]), `["half done" map["step":"2"] "7" "two\nlines" "" <nil>]`)
	expect.Equal(t, fmt.Sprint(claims[1]["updates"]), "[again]")
	s.do("/get_task", `{"id":"`+id+`","claim":1,"seq":0}`)
	s.fails(409, "lost", "/get_task", `{"id":"`+id+`","claim":1,"seq":1}`)
	s.fails(409, "has 1 updates", "/complete", `{"task":"`+id+`","claim":1,"seq":0}`)
	s.do("/complete", `{"task":"`+id+`","claim":1,"seq":1,"message":{"sum":3}}`)
	expect.Equal(t, s.stored(id).State, task.Succeeded)
	whole := expect.Result(s.manager.Get(t.Context(), s.stored(id).ID)).Value(t)
	expect.Equal(t, whole.Rounds[1].Result, `{"sum":3}`)

	// The answer has the newest 10,000 updates.
	id = s.enqueue(`"queue":"q"`)
	s.claim("q")
	st := managing.Of(s.manager).Store
	p := st.Conn.Redis.Pipeline()
	for n := 1; n <= 10_000; n++ {
		p.XAdd(t.Context(), &redis.XAddArgs{Stream: st.Keys.UpdatesPrefix() + "2", ID: fmt.Sprint("0-", n), Values: []string{"line", "old"}})
	}
	expect.Result(p.Exec(t.Context())).OK(t)
	s.expire(id)
	s.claim("q")
	s.do("/update", update(1, 0, `"new"`))
	claims = claimsOf(s.task(id))
	expect.Equal(t, fmt.Sprint(claims[1]["updates"]), "[new]")
	expect.Equal(t, fmt.Sprint(claims[0]["updates_from"]), "1")
	expect.Len(t, claims[0]["updates"], 9_999)
	s.do("/get_task", `{"id":"`+id+`","claim":1,"seq":0}`)
	s.do("/get_task", `{"id":"`+id+`","claim":0,"seq":0}`)
	s.fails(409, "has lost it", "/get_task", `{"id":"`+id+`","claim":1,"seq":1}`)
}

// Several clients send the same update at the same time with different messages. One of them wins, and only it gets a good answer.
func TestRacingUpdates(t *testing.T) {
	s := newSite(t)
	id := s.enqueue(`"queue":"q"`)
	s.claim("q")
	var mu sync.Mutex
	var won []string
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			message := fmt.Sprint("message ", i)
			status, _ := s.call(s.tokens[access.Operator], "/update", fmt.Sprintf(`{"task":"%s","claim":0,"seq":0,"message":"%s"}`, id, message))
			mu.Lock()
			defer mu.Unlock()
			if status == 200 {
				won = append(won, message)
			} else {
				expect.Equal(t, status, 409)
			}
		})
	}
	all.Wait()
	expect.MustLen(t, won, 1)
	expect.Equal(t, fmt.Sprint(claimsOf(s.task(id))[0]["updates"]), fmt.Sprint(won))
}

// Copies of a completion may come at the same time.
func TestComplete(t *testing.T) {
	s := newSite(t)
	id := s.enqueue(`"queue":"q"`)
	s.claim("q")
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { s.do("/complete", `{"task":"`+id+`","claim":0,"w":2}`) })
	}
	all.Wait()
	done := claimsOf(s.task(id))[0]
	expect.NotEqual(t, done["completed"], nil)
	expect.Equal(t, done["completed"], done["end"])
}

// While Redis does not answer, a claim ends when its client goes, or when its time is over.
func TestClaimDuringAnOutage(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := newSiteOn(t, proxy.Addr, time.Hour)
	s.claim("q") // connects
	hasty := web.New(s.manager, web.Options{Interfaces: []wire.Interface{skuld.New("/skuld", s.manager)}, Timeout: testspace.Soon, Log: testspace.Silent})
	proxy.Hang()
	defer proxy.Resume()
	for _, handler := range []http.Handler{s.handler, hasty} {
		ctx, leave := context.WithCancel(t.Context())
		held, ended := proxy.Held(), make(chan int)
		go func() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, webtest.Call(ctx, s.tokens[access.Operator], http.MethodPost, "/skuld/claim", `{"queue":"q","dt":60000}`))
			ended <- w.Code
		}()
		if handler != hasty {
			expect.Eventually(t, "the call waits for Redis", func() bool { return proxy.Held() > held })
			leave()
		}
		expect.Equal(t, <-ended, 503)
		leave()
	}
}

// A worker's token learns nothing about claims of others, not even whether a task exists.
func TestForeignClaims(t *testing.T) {
	s := newSite(t)
	limited := webtest.AddToken(t, s.manager, access.Token{Name: "limited", Role: access.Worker})
	s.enqueue(`"queue":"a"`)
	s.enqueue(`"queue":"a"`)
	runs, _ := s.claim("a")
	done, _ := s.claim("a")
	s.do("/complete", `{"task":"`+done+`","claim":0}`)
	waits := s.enqueue(`"queue":"b"`)
	for _, path := range []string{"/renew", "/update", "/complete"} {
		answers := map[string]bool{}
		for _, id := range []string{runs, done, waits, "none"} {
			code, answer := s.call(limited, path, `{"task":"`+id+`","claim":0,"dt":1000,"seq":0,"message":1}`)
			delete(answer, "correlation_id")
			answers[strings.ReplaceAll(fmt.Sprint(code, answer), id, "ID")] = true
		}
		expect.Len(t, answers, 1, path, fmt.Sprint(answers))
	}
}

// Each token may do what its role allows, and workers use only their own claims.
func TestRights(t *testing.T) {
	s := newSite(t)
	limited := webtest.AddToken(t, s.manager, access.Token{Name: "limited", Role: access.Worker, Queues: []string{"b"}})
	id := s.enqueue(`"queue":"a"`)
	mine := `{"task":"` + id + `","claim":0,"dt":1000,"seq":0,"message":1}`
	status, answer := s.call(s.tokens[access.Worker], "/claim", `{"queue":"a","dt":60000}`)
	expect.MustEqual(t, status, 200)
	expect.MustTrue(t, answer["task"] != nil, answer)
	for _, c := range []struct {
		token, path, body string
		status            int
	}{
		{limited, "/claim", `{"queue":"a","dt":1}`, 403},
		{limited, "/claim", `{"queue":"b","dt":1}`, 200},
		{limited, "/claim", `{"dt":1}`, 200},
		{s.tokens[access.Viewer], "/complete", mine, 403},
		{s.tokens[access.Worker], "/get_task", `{"id":"` + id + `"}`, 403},
		{s.tokens[access.Submitter], "/get_task", `{"id":"` + id + `"}`, 404},
		{s.tokens[access.Submitter], "/enqueue", `{"task":{"dependencies":["` + id + `"]}}`, 404},
		{s.tokens[access.Submitter], "/enqueue", `{"task":{"id":"` + id + `"}}`, 409},
		{s.tokens[access.Submitter], "/wipe", ``, 403},
		{s.tokens[access.Worker], "/wipe", ``, 403},
		{s.tokens[access.Viewer], "/count_tasks", ``, 200},
		{s.tokens[access.Worker], "/update", mine, 200},
		{s.tokens[access.Operator], "/renew", mine, 200},
		{s.tokens[access.Worker], "/complete", mine, 409}, // it has one update
		{s.tokens[access.Worker], "/complete", `{"task":"` + id + `","claim":0,"seq":1}`, 200},
		{"", "/count_tasks", ``, 401},
	} {
		got, answer := s.call(c.token, c.path, c.body)
		expect.Equal(t, got, c.status, c.path, c.body, answer)
	}
}

// A worker over HTTP cannot have the name under which its token claims tasks of Skuld.
func TestWorkerNamedSkuld(t *testing.T) {
	s := newSite(t)
	api := func(method, path, body string) string {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, webtest.Call(t.Context(), s.tokens[access.Operator], method, "/api/v1/work"+path, body))
		expect.True(t, w.Code < 300, method, w.Code, w.Body.String())
		return w.Body.String()
	}
	const worker = `{"name":"skuld","programs":["other"]}`
	session := webtest.Decode[struct{ Session string }](t, api("POST", "", worker)).Session
	id := s.enqueue(`"queue":"q"`)
	s.claim("q")
	api("DELETE", "/"+session, "")
	api("POST", "", worker)
	expect.Result(s.server.RunOnce(t.Context())).OK(t)
	s.do("/complete", `{"task":"`+id+`","claim":0}`)
}

// Lists have pages. Wipe removes all tasks in every state, and no others.
func TestListAndWipe(t *testing.T) {
	s := newSite(t)
	for i := range 25 {
		s.enqueue(fmt.Sprintf(`"id":"t%02d","queue":"q"`, i))
	}
	for range 3 {
		s.claim("q")
	}
	s.do("/complete", `{"task":"t00","claim":0}`)
	s.do("/complete", `{"task":"t01","claim":0}`)
	expect.Result(s.manager.Open(t.Context(), manager.Definition{Program: "of TDF"})).OK(t)
	var seen []string
	for cursor, more := "", true; more; {
		answer := s.do("/list_tasks", `{"limit":10,"cursor":"`+cursor+`"}`)
		for _, one := range answer["tasks"].([]any) {
			seen = append(seen, one.(map[string]any)["id"].(string))
		}
		cursor, more = answer["next"].(string)
	}
	expect.MustLen(t, seen, 25)
	expect.MustEqual(t, seen[0], "t00")
	expect.Equal(t, seen[24], "t24")
	w := s.request(s.tokens[access.Viewer], http.MethodGet, "/list_tasks", "")
	var list []struct{ Claims []struct{ End *int64 } }
	expect.NoError(t, json.Unmarshal(w.Body.Bytes(), &list), w.Body.String())
	expect.MustLen(t, list, 25)
	expect.MustLen(t, list[1].Claims, 1)
	expect.True(t, list[1].Claims[0].End != nil, w.Body.String())
	s.fails(400, "limit", "/list_tasks", `{"limit":1001}`)
	s.fails(404, "t99", "/get_task", `{"id":"t99"}`)
	s.fails(400, "", "/get_task", `{"id":""}`)
	expect.Equal(t, fmt.Sprint(s.do("/get_task", `{"id":"t00","r":3}`)["r"]), "1")

	expect.Equal(t, fmt.Sprint(s.do("/wipe", "")), "map[removed:25]")
	expect.Equal(t, fmt.Sprint(s.do("/wipe", "")), "map[removed:0]")
	expect.Equal(t, fmt.Sprint(s.do("/count_tasks", "")["count"]), "0")
	counts := expect.Result(s.manager.Counts(t.Context())).Value(t)
	expect.Equal(t, counts[task.Open], int64(1), "tasks that are not of Skuld")
	expect.Equal(t, s.enqueue(`"id":"t00"`), "t00", "the id of a removed task")
	expect.Equal(t, s.task("t00")["state"], "open")
}
