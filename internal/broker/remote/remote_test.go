package remote

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// A fake is an API whose answers the test chooses.
type fake struct {
	*testing.T
	*httptest.Server
	log testlog.Buffer

	mu     sync.Mutex
	calls  []string // method, path, body
	tokens map[string]bool
	answer func(w http.ResponseWriter, path, body string) // nil for a registration that succeeds
	pauses []time.Duration
}

const registered = `{"session":"w.AAAAAAAAAAAAAAAAAAAAAAAAAA","worker":"t/w","lease":30,"lost":3,"drained":"ann"}`

func newFake(t *testing.T, start func(*httptest.Server)) *fake {
	f := &fake{T: t, tokens: map[string]bool{}}
	f.Server = httptest.NewUnstartedServer(f)
	f.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	start(f.Server)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.calls = append(f.calls, r.Method+" "+strings.TrimPrefix(r.URL.String(), "/api/v1/work")+" "+string(body))
	f.tokens[r.Header.Get("Authorization")] = true
	answer := f.answer
	f.mu.Unlock()
	if answer == nil {
		fmt.Fprint(w, registered)
		return
	}
	answer(w, r.URL.Path, string(body))
}

// says lets the API answer each call with a status and a text.
func (f *fake) says(status int, text string) {
	f.answers(func(w http.ResponseWriter, _, _ string) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	})
}

func (f *fake) answers(do func(w http.ResponseWriter, path, body string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.calls, f.pauses = do, nil, nil
}

func (f *fake) made() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

const secret = "tdf_secret"

// config returns a configuration for the API, with the file of a token.
func (f *fake) config() config.API {
	path := filepath.Join(f.TempDir(), "token")
	expect.NoError(f, os.WriteFile(path, []byte(secret+"\n"), 0o600))
	return config.API{URL: f.URL, TokenFile: path}
}

// sleep is a pause that does not pass time.
func (f *fake) sleep(_ context.Context, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pauses = append(f.pauses, d)
}

func (f *fake) remote(cfg config.API) *Remote {
	f.Helper()
	r := expect.Result(New(cfg, 30, slog.New(slog.NewTextHandler(&f.log, nil)), f.sleep)).Value(f)
	f.Cleanup(r.Close)
	return r
}

func (f *fake) takeover() broker.Takeover {
	return broker.Takeover{Sleep: f.sleep, Log: slog.New(slog.DiscardHandler)}
}

var fetching = presence.WorkerInfo{Name: "w", Offer: class.Offer{Programs: true}}

// working returns a registered worker.
func (f *fake) working() *Remote {
	f.Helper()
	r := f.remote(f.config())
	drained := expect.Result(r.TakeName(f.Context(), fetching, f.takeover())).Value(f)
	expect.Equal(f, drained, "ann")
	return r
}

// What a worker offers reaches the API in its registration, and the lost tasks come back.
func TestRegistrations(t *testing.T) {
	f := newFake(t, (*httptest.Server).Start)
	for want, o := range map[string]class.Offer{
		`"queues":["a:2"],"tags":["gpu"],"campaign":"g","sources":true,"lease":30,"programs":[]}`: {Programs: true, Queues: []class.QueueShare{{Queue: "a", Weight: 2}}, Tags: []string{"gpu"}, Group: "g"},
		`"sources":true,"lease":30}`:       {Programs: true, Anything: true},
		`"lease":30,"programs":["p","q"]}`: {Handlers: []string{"p", "q"}},
	} {
		r := f.remote(f.config())
		expect.Result(r.TakeName(t.Context(), presence.WorkerInfo{Name: "w", Offer: o}, f.takeover())).OK(t)
		all := f.made()
		expect.Contains(t, all[len(all)-1], want)
		expect.Equal(t, expect.Result(r.GiveUp(t.Context())).Value(t), 3)
	}
}

// A name that stays taken for longer than a lease is another worker's. Other answers end the start at once.
func TestNames(t *testing.T) {
	f := newFake(t, (*httptest.Server).Start)
	r := f.remote(f.config())
	f.says(409, `{"code":"taken","detail":"on host h"}`)
	_, err := r.TakeName(t.Context(), fetching, f.takeover())
	expect.Fails(t, err, "on host h")
	expect.True(t, errors.As(err, new(broker.NameTaken)), "the name is not taken", err)
	expect.Compare(t, len(f.made()), ">", 30)
	calls := 0
	f.answers(func(w http.ResponseWriter, _, _ string) {
		calls++
		if calls <= 100 { // a grace period that is longer than the lease
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(409)
			return
		}
		fmt.Fprint(w, registered)
	})
	expect.Result(f.remote(f.config()).TakeName(t.Context(), fetching, f.takeover())).OK(t)
	for _, status := range []int{401, 403, 404, 302, 422, 507} {
		f.says(status, "<html>")
		_, err := r.TakeName(t.Context(), fetching, f.takeover())
		expect.Fails(t, err, fmt.Sprint("the API says: ", status))
		expect.Len(t, f.made(), 1, status)
	}

	f.answers(nil)
	r = f.working()
	f.says(409, `{"code":"taken"}`)
	_, err = r.WorkerHeartbeat(t.Context(), fetching)
	expect.True(t, errors.As(err, new(broker.NameTaken)), "the name is not taken", err)
	for _, status := range []int{404, 410} { // the record of the worker is gone
		f.answers(func(w http.ResponseWriter, path, _ string) {
			if path == "/api/v1/work" {
				fmt.Fprint(w, registered)
				return
			}
			w.WriteHeader(status)
		})
		expect.Equal(t, expect.Result(r.WorkerHeartbeat(t.Context(), fetching)).Value(t), "ann")
		expect.Len(t, f.made(), 2)
	}
	f.answers(func(w http.ResponseWriter, path, _ string) {
		if path == "/api/v1/work" {
			fmt.Fprint(w, `{"session":"w.BBBBBBBBBBBBBBBBBBBBBBBBBB"}`)
			return
		}
		w.WriteHeader(404)
	})
	_, err = r.WorkerHeartbeat(t.Context(), fetching)
	expect.FailsWith(t, err, errOtherToken)
	expect.True(t, errors.As(err, new(broker.NameTaken)), "the name is not taken", err)
	f.says(404, "")
	expect.Result(r.WorkerHeartbeat(t.Context(), presence.WorkerInfo{State: presence.WorkerGone})).OK(t)
}

// An outage is every answer after which the same call may succeed. The worker repeats the call, and reads its token again.
func TestOutages(t *testing.T) {
	f := newFake(t, (*httptest.Server).Start)
	cfg := f.config()
	r := f.remote(cfg)
	expect.Result(r.TakeName(t.Context(), fetching, f.takeover())).OK(t)
	next := "tdf_next"
	for i, away := range []func(http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(401) },
		func(w http.ResponseWriter) { w.WriteHeader(408) },
		func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		},
		func(w http.ResponseWriter) { w.WriteHeader(500) },
		func(w http.ResponseWriter) { w.WriteHeader(502) },
		func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "99999999999999999999")
			w.WriteHeader(503)
		},
		func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter) { fmt.Fprint(w, `{"tasks":[`) },
		func(w http.ResponseWriter) { fmt.Fprint(w, "<html>log in</html>") },
		func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"tasks":[]}`)
		},
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusGatewayTimeout) },
	} {
		n := 0
		f.answers(func(w http.ResponseWriter, _, body string) {
			if n++; n == 3 {
				fmt.Fprint(w, `{"tasks":[],"lease":30}`)
				return
			}
			expect.NoError(t, os.WriteFile(cfg.TokenFile, []byte(next), 0o600))
			away(w)
		})
		expect.Result(r.Exchange(t.Context(), t.Context(), &redisstate.ClaimParams{Most: 1})).OK(t)
		all := f.made()
		expect.MustLen(t, all, 3, i)
		expect.Equal(t, all[0], all[2], "the repeated call is another one")
		expect.True(t, f.tokens["Bearer "+next], "the worker does not read its token again")
	}
	for _, p := range f.pauses {
		expect.Compare(t, p, "<=", longestRetryAfter)
	}
	expect.True(t, !strings.Contains(f.log.String(), secret), f.log.String())

	ctx, cancel := context.WithCancelCause(t.Context())
	f.answers(func(w http.ResponseWriter, _, _ string) {
		cancel(io.ErrNoProgress)
		w.WriteHeader(503)
	})
	_, err := r.Exchange(ctx, ctx, &redisstate.ClaimParams{Most: 1})
	expect.FailsWith(t, err, io.ErrNoProgress)
}

// The worker sends its token only to the server that it trusts, and bounds what the server sends.
func TestHostileServers(t *testing.T) {
	f := newFake(t, (*httptest.Server).StartTLS)
	der := f.Certificate().Raw
	ca := filepath.Join(t.TempDir(), "ca.pem")
	expect.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	take := func(cfg config.API) error {
		_, err := f.remote(cfg).TakeName(t.Context(), fetching, f.takeover())
		return err
	}
	with := func(change func(*config.API)) config.API {
		cfg := f.config()
		change(&cfg)
		return cfg
	}
	expect.Fails(t, take(f.config()), "certificate")
	expect.Len(t, f.made(), 0, "the worker has sent its token")
	expect.NoError(t, take(with(func(c *config.API) { c.CA = ca })))

	elsewhere := newFake(t, (*httptest.Server).Start)
	f.answers(func(w http.ResponseWriter, _, _ string) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	expect.Fails(t, take(with(func(c *config.API) { c.CA = ca })), "the worker follows none")
	expect.Len(t, elsewhere.made(), 0, "the worker has followed a redirect")

	for key, cfg := range map[string]config.API{
		"api_token_file: open":    with(func(c *config.API) { c.TokenFile = "/none" }),
		"so users other than":     with(func(c *config.API) { expect.NoError(t, os.Chmod(c.TokenFile, 0o644)) }),
		"is empty":                with(func(c *config.API) { expect.NoError(t, os.WriteFile(c.TokenFile, []byte(" \n"), 0o600)) }),
		"api_ca: open":            with(func(c *config.API) { c.CA = "/none" }),
		"contains no certificate": with(func(c *config.API) { c.CA = c.TokenFile }),
	} {
		_, err := New(cfg, 30, slog.New(slog.DiscardHandler), f.sleep)
		expect.Fails(t, err, key)
		expect.True(t, errors.As(err, new(*config.Error)), "no configuration error", err)
		expect.True(t, !strings.Contains(err.Error(), secret), err)
	}
}

// Tasks that a worker cannot run fail, and answers about others are errors.
func TestHostileAnswers(t *testing.T) {
	f := newFake(t, (*httptest.Server).Start)
	r := f.working()
	claim := func(tasks string) (redisstate.ClaimResult, error) {
		f.says(200, `{"now":"2026-01-02T03:04:05Z","lease":30,"tasks":[`+tasks+`]}`)
		return r.Exchange(t.Context(), t.Context(), &redisstate.ClaimParams{Most: 1})
	}
	for _, one := range []string{
		`{"id":0,"program":"p"}`, `{"id":1,"round":-1,"program":"p"}`, `{"id":1,"round":2000000000,"program":"p"}`, `{"id":1,"program":"../p"}`, `{"id":1}`,
		`{"id":1,"program":"p","source":"file:/etc/passwd"}`, `{"id":1,"program":"p","campaign":"a\u0000b"}`,
	} {
		c := expect.Result(claim(one)).Value(t)
		expect.MustLen(t, c.Claims, 1)
		expect.True(t, c.Claims[0].Invalid != nil, "the task is valid", one)
	}
	_, err := claim(`{"id":1,"program":"p"},{"id":2,"program":"p"}`)
	expect.Fails(t, err, "2 tasks instead of 1")

	report := func(answers string) error {
		f.says(200, answers)
		return r.report(t.Context(), deliveries(rules.Result{Exit: "0"}))
	}
	for _, answers := range []string{`{}`, `{"reports":[]}`, `{"reports":[{"id":1,"accepted":true},{"id":1,"accepted":true}]}`, `{"reports":[{"id":2,"accepted":true}]}`, `{"reports":[{"id":1,"round":1,"accepted":true}]}`} {
		expect.Fails(t, report(answers), "the API answered")
	}
	f.says(200, `{"lost":[{"id":9}],"followed":[9,1]}`)
	renewed := expect.Result(r.Renew(t.Context(), redisstate.LeaseRenewal{ID: 1})).Value(t)
	expect.True(t, renewed.Lost[0] == nil, "lost", renewed.Lost)
	expect.True(t, renewed.Followed[0], "not followed")
	expect.Equal(t, renewed.Now, 0)
}

func deliveries(results ...rules.Result) (all []*broker.Delivery) {
	for i, x := range results {
		one := broker.ClaimedTask{ID: int64(i + 1), Program: "p", Claim: fmt.Sprint("c", i+1)}
		all = append(all, &broker.Delivery{Task: claimOf(&one).Task, Ending: broker.Ending{Claim: one.Claim, Result: x}})
	}
	return all
}

// What a round printed, and how it ended, reaches the API in its form.
func TestReports(t *testing.T) {
	lines := func(d *broker.Delivery) string {
		text := expect.Result(encode(reportOf(d))).Value(t)
		return strings.TrimPrefix(strings.TrimSpace(string(text)), `{"id":1,"round":0,"claim":"c1",`)
	}
	for want, x := range map[string]rules.Result{
		`"action":"complete","exit":0,"stdout":"a<b","result":{"n":1},"seconds":2}`:                 {Exit: "0", Output: "a<b", JSON: `{"n": 1}`, Seconds: 2},
		`"action":"complete","exit":3,"stderr":"boom\nreason"}`:                                     {Exit: "3", Error: "boom", Reason: "reason"},
		`"action":"complete","exit":0,"stdout_base64":"/wA=","stderr":"warning"}`:                   {Exit: "0", Output: "\xff\x00", Error: "warning"},
		`"action":"fail","exit":137,"stdout":"out","error":"run.sh ended with signal: killed"}`:     {Exit: "signal: killed", Output: "out"},
		`"action":"fail","error":"run.sh ended with signal: odd"}`:                                  {Exit: "signal: odd"},
		`"action":"fail","exit":1,"stderr":"err","error":"for good","permanent":true}`:              {Exit: "1", Error: "err", Reason: "for good", Permanent: true},
		`"action":"complete","exit":0,"stdout":"a","stderr":"b","stdout_bytes":7,"stderr_bytes":8}`: {Exit: "0", Output: "a", Error: "b", OutputBytes: 7, ErrorBytes: 8},
		`"action":"complete","exit":0,"files_kept":"on w in /d"}`:                                   {Exit: "0", Files: task.Files{Kept: "on w in /d"}},
		`"action":"complete","exit":0,"stdout":"a"}`:                                                {Exit: "0", Output: "a", OutputBytes: 1},
		`"action":"complete","exit":0}`:                                                             {Exit: "0", Permanent: true},
		`"action":"fail","error":"no run.sh"}`:                                                      {Refused: true, Reason: "no run.sh"},
		`"action":"fail","exit":0,"error":"result: too large"}`:                                     {Refused: true, Exit: "0", Reason: "result: too large", JSON: "{"},
	} {
		expect.Equal(t, lines(deliveries(x)[0]), want)
	}
	for want, e := range map[string]broker.Ending{
		`"action":"release","error":"stops"}`:             {Way: broker.Released, Reason: "stops"},
		`"action":"fail","error":"busy\ufffd","later":5}`: {Way: broker.Later, Reason: "busy\xff", Delay: 5},
		`"action":"fail","error":"no gpu","unfit":true}`:  {Way: broker.Unfit, Reason: "no gpu"},
	} {
		d := deliveries(rules.Result{Output: "not sent"})[0]
		e.Claim = d.Claim
		d.Ending = e
		expect.Equal(t, strings.ReplaceAll(lines(d), "\uFFFD", `\ufffd`), want)
	}
}

// A refusal of one report concerns this round alone: it fails, and says why.
func TestRefusedReports(t *testing.T) {
	f := newFake(t, (*httptest.Server).Start)
	r := f.working()
	all := deliveries(rules.Result{Exit: "0"}, rules.Result{Exit: "0", JSON: "[[]]"}, rules.Result{Exit: "0"}, rules.Result{Exit: "0"}, rules.Result{Exit: "0"})
	all[3].Way = broker.TimedOut
	all[4].Way, all[4].Reason = broker.Unfit, "no gpu"
	answered := 0
	for _, d := range all {
		d.Answered = func(context.Context) { answered++ }
	}
	f.answers(func(w http.ResponseWriter, _, body string) {
		var reports []broker.Report
		expect.NoError(t, json.Unmarshal([]byte(body), &reports))
		var out struct {
			Reports []broker.Reported `json:"reports"`
		}
		for _, x := range reports {
			if x.Result != nil {
				w.WriteHeader(422)
				fmt.Fprint(w, `{"code":"invalid","detail":"too deep"}`)
				return
			}
			answer := broker.Reported{ID: x.ID, Accepted: x.ID != 3}
			if answer.Detail = "gone"; x.ID < 3 {
				answer.Detail = ""
			}
			out.Reports = append(out.Reports, answer)
		}
		text, _ := json.Marshal(out)
		_, _ = w.Write(text)
	})
	expect.NoError(t, r.report(t.Context(), all))
	expect.Equal(t, answered, len(all))
	expect.True(t, all[0].Err == nil, all[0].Err)
	expect.True(t, all[1].ResultLost, "the result is not lost")
	expect.Contains(t, all[1].Result.Reason, "too deep")
	expect.True(t, errors.As(all[2].Err, new(*rules.StateError)), "not lost", all[2].Err)
	expect.Equal(t, all[4].Way, broker.Done)
	expect.Equal(t, all[4].Result.Reason, "gone")
	f.says(500, "") // perhaps one of the tasks is damaged
	expect.Fails(t, r.report(t.Context(), deliveries(rules.Result{Exit: "0"}, rules.Result{Exit: "0"})), "500")
	expect.Len(t, f.made(), 3)
	opening := deliveries(rules.Result{Exit: "0"})
	opening[0].Following, opening[0].Task.EndBefore = make([]broker.Following, 1), task.Never
	for _, status := range []int{404, 500} { // of a proxy, for example
		f.says(status, "")
		expect.Fails(t, r.report(t.Context(), opening), fmt.Sprint(status))
		expect.True(t, opening[0].OpensTasks(), "the round has failed because of the status", status)
	}
}

// Renewals have the bounds of the API, so that none of them is refused.
func TestRenewals(t *testing.T) {
	f := newFake(t, (*httptest.Server).Start)
	r := f.working()
	f.says(200, `{"lease":30,"lost":[{"id":2,"round":0,"detail":"it is open in round 1"}]}`)
	progress, checkpoint := "0.5 half done", "\xff"
	renewed := expect.Result(r.Renew(t.Context(), redisstate.LeaseRenewal{ID: 1, Claim: "c", Report: redisstate.LiveReport{
		Progress: &progress, Checkpoint: &checkpoint, Tail: &task.Tail{Text: "tail\xff", TailEnd: task.TailEnd{All: 9, Stdout: -1, Stderr: 2}},
		Updates: []string{"a\nb", strings.Repeat("x", 5000), "left out"}, FirstUpdate: 999,
	}}, redisstate.LeaseRenewal{ID: 2, Limit: 5, Begun: true})).Value(t)
	expect.Fails(t, renewed.Lost[1], "it is open in round 1")
	expect.True(t, errors.As(renewed.Lost[1], new(*rules.StateError)), "not lost", renewed.Lost)
	all := f.made()
	expect.MustLen(t, all, 1)
	expect.Contains(t, all[0], `"progress":{"fraction":0.5,"text":"half done"},"checkpoint_base64":"/w==","tail":{"base64":"dGFpbP8=","end":9,"stdout":-1,"stderr":2},"updates":["a b","xxx`)
	expect.Contains(t, all[0], `…"],"updates_from":999},{"id":2,"round":0,"claim":""}]`)
	expect.True(t, !strings.Contains(all[0], "left out"), all[0])

	large := strings.Repeat("x", 3<<20)
	var many []redisstate.LeaseRenewal
	for i := range 3 {
		many = append(many, redisstate.LeaseRenewal{ID: int64(i + 3), Report: redisstate.LiveReport{Checkpoint: &large}})
	}
	f.says(200, `{"lost":[]}`)
	expect.Result(r.Renew(t.Context(), many...)).OK(t)
	expect.Len(t, f.made(), 3)
}

// Await makes a claim that waits until the worker stops, and then asks
// whether the answer that it did not get had tasks.
func TestClaimsThatWait(t *testing.T) {
	f := newFake(t, (*httptest.Server).Start)
	r := f.working()
	f.says(200, `{"tasks":[]}`)
	expect.Result(r.Exchange(t.Context(), t.Context(), &redisstate.ClaimParams{Most: 1000})).OK(t)
	stopping, stop := context.WithCancel(t.Context())
	f.answers(func(w http.ResponseWriter, _, body string) {
		if strings.Contains(body, "wait") {
			stop()
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"tasks":[{"id":7,"round":1,"claim":"c","program":"p","input_base64":"/w==","after":true,"seconds":5,"checkpoint":"cp","last_error":"boom"}]}`)
	})
	_, c, err := r.Await(stopping, t.Context(), redisstate.ClaimParams{Most: 1000}, time.Hour)
	expect.NoError(t, err)
	expect.MustLen(t, c.Claims, 1)
	calls := slices.Compact(f.made()) // it may try again before it notices that the worker stops
	expect.Equal(t, strings.Join(calls, "\n"), `POST /w.AAAAAAAAAAAAAAAAAAAAAAAAAA/claims {"most":100,"wait":20,"number":2}`+"\n\n"+
		`POST /w.AAAAAAAAAAAAAAAAAAAAAAAAAA/claims {"most":100,"number":2}`+"\n")
	one := c.Claims[0].Task
	checkpoint, lastError, err := r.Earlier(t.Context(), one)
	expect.NoError(t, err)
	expect.Equal(t, checkpoint+" "+lastError, "cp boom")
	expect.Equal(t, one.Timeout, 5)
	expect.Equal(t, one.Links, 1)
	_, data, err := one.Arguments()
	expect.NoError(t, err)
	expect.Equal(t, string(data), "\xff")

	f.says(200, "archive")
	archive := expect.Result(r.Archive(t.Context(), one, "aa")).Value(t)
	expect.Equal(t, string(expect.Result(io.ReadAll(archive)).Value(t)), "archive")
	var after strings.Builder
	unread, err := r.WriteDependencies(t.Context(), one, &after)
	expect.NoError(t, errors.Join(unread, err))
	expect.Equal(t, strings.Join(f.made(), ""), "GET /w.AAAAAAAAAAAAAAAAAAAAAAAAAA/programs/aa?claim=c&id=7&round=1 GET /w.AAAAAAAAAAAAAAAAAAAAAAAAAA/after?claim=c&id=7&round=1 ")
	f.says(404, `{"detail":"none"}`)
	_, err = r.Archive(t.Context(), one, "aa")
	expect.FailsWith(t, err, fs.ErrNotExist)
	unread, _ = r.WriteDependencies(t.Context(), one, &after)
	expect.Fails(t, unread, "none")
}

// A worker gives a task back if its API keeps no blobs, but not if a blob is lost.
func TestAPIWithoutBlobs(t *testing.T) {
	f := newFake(t, (*httptest.Server).Start)
	store := expect.Result(f.working().Blobs(t.Context())).Value(t)
	for _, keeps := range []bool{false, true} {
		f.answers(func(w http.ResponseWriter, path, _ string) {
			if !keeps || !strings.HasSuffix(path, "/blobs") {
				w.WriteHeader(http.StatusNotFound)
			}
			fmt.Fprint(w, `{"code":"not_found","detail":"none"}`)
		})
		err := store.ReadBlob(t.Context(), task.Blob{SHA256: strings.Repeat("0", 64), Bytes: 5}, 0, io.Discard)
		expect.Fails(t, err, "none")
		expect.Equal(t, errors.Is(err, blob.ErrElsewhere), !keeps)
		expect.Len(t, f.made(), 2)
	}
}
