package taskmaster_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// A task goes from its submission to DONE, and each answer is already true.
func TestTaskIsCompleted(t *testing.T) {
	s := newSite(t)
	s.submit("mail", `{}`) // is claimed later, because its priority is lower
	id := s.submit("mail", `{"to":"a"}`, `"tags":["b","a","b"]`, `"priority":1`)
	expect.MustLen(t, id, 36)
	expect.MustEqual(t, id[14], '8', "is a UUID of version 8:", id)
	expect.Contains(t, "89ab", id[19:20], "is a UUID of version 8:", id)
	before := s.mustBe(id, "PENDING", 0)
	expect.Equal(t, fmt.Sprintln(before.QueueName, before.Tags, before.Result, before.LastError, before.FinishedAt), "mail [a b] <nil> <nil> <nil>\n")
	expect.True(t, time.Since(before.CreatedAt).Abs() < time.Hour, before.CreatedAt)
	s.register("w", "mail", `,"tags":["a","b"]`)
	got := s.mustClaim("w", "mail", 1)[0]
	expect.Equal(t, fmt.Sprint(got.TaskID, string(got.Payload), got.Attempts), fmt.Sprint(id, `{"to":"a"}`, 1))
	s.mustBe(id, "RUNNING", 1)
	s.complete(204, id, "w")
	after := s.mustBe(id, "DONE", 1)
	expect.Equal[any](t, after.Result, "ok")
	expect.Equal(t, after.LastError, nil)
	expect.MustTrue(t, after.FinishedAt != nil, after)
	expect.True(t, !after.FinishedAt.Before(after.CreatedAt), after)
	s.complete(409, id, "w")
	s.fail(409, id, "w")
	s.round()
	s.mustBe(id, "DONE", 1)
}

// A task that fails waits for its back-off, keeps its error, and is DEAD after maxAttempts.
func TestTaskFails(t *testing.T) {
	s := newSite(t)
	id := s.submit("q", `{}`)
	for attempt := 1; attempt <= 3; attempt++ {
		expect.Equal(t, s.mustClaim("w", "q", 1)[0].Attempts, attempt, "attempts")
		s.fail(204, id, "w")
		status := "PENDING"
		if attempt == 3 {
			status = "DEAD"
		}
		got := s.mustBe(id, status, attempt)
		expect.MustTrue(t, got.LastError != nil, got)
		expect.Equal(t, *got.LastError, "boom")
		expect.Equal(t, got.FinishedAt != nil, attempt == 3)
	}
	expect.Len(t, s.claim("w", "q", 1), 0, "claimed")
	once := s.submit("q", `{}`, `"maxAttempts":1`)
	s.mustClaim("w", "q", 1)
	s.fail(204, once, "w")
	s.mustBe(once, "DEAD", 1)
	again := s.submit("q", `{}`)
	s.mustClaim("w", "q", 1)
	s.fail(204, again, "w")
	s.mustClaim("w", "q", 1)
	expect.Equal(t, *s.mustBe(again, "RUNNING", 2).LastError, "boom", "the error of the first attempt")
	s.complete(204, again, "w")
	s.mustBe(again, "DONE", 2)
}

// Each wait is twice as long as the one before, up to five minutes. TDF varies waits by up to 20 %.
func TestBackOff(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	s := siteIn(t, cfg)
	id := s.submit("q", `{}`, `"maxAttempts":20`)
	claims := s.mustClaim("w", "q", 1)
	s.fail(204, claims[0].TaskID, "w")
	s.mustBe(id, "PENDING", 1)
	expect.Len(t, s.claim("w", "q", 1), 0, "claimed before the end of the back-off")
	stored := testspace.Read(t, s.store, 1)
	wait := stored.Ready.Sub(stored.Rounds.At(1).Entered[task.Open])
	expect.Compare(t, wait, ">=", 1.6)
	expect.Compare(t, wait, "<=", 2.4)
	expect.Equal(t, fmt.Sprint(stored.Backoff, stored.BackoffFactor), "2 2", "base and factor")
	expect.Compare(t, stored.BackoffMax*1.2, "<=", 300.001)
	expect.Compare(t, stored.BackoffMax, ">=", 240)
}

// Reports of one task race with each other, in two processes, and with a server. One of them wins, and the answer of the winner is true.
func TestReportsRace(t *testing.T) {
	s := newSite(t)
	processes := []*site{s, siteIn(t, s.cfg)}
	for range 20 {
		id := s.submit("q", `{}`, `"maxAttempts":1`)
		s.mustClaim("w", "q", 1)
		status := make([]int, 4)
		var all sync.WaitGroup
		name := s.name("w")
		for i := range status {
			p := processes[i%2]
			all.Go(func() {
				status[i], _ = p.as(s.token, "POST", "/tasks/v1/"+id+"/"+[]string{"complete", "fail"}[i/2], `{"workerId":"w","error":"boom"}`)
			})
		}
		all.Go(s.round)
		all.Wait()
		expect.True(t, strings.HasSuffix(name, "/w"), name)
		got := s.get(id)
		won := 0
		for i, of := range status {
			expect.OneOf(t, of, 204, 409)
			if of == 204 {
				won++
				expect.True(t, (i/2 == 0) == (got.Status == "DONE"), "report", i, "won, and the task is", got.Status)
			}
		}
		expect.True(t, won >= 1, "nobody won", status)
		expect.OneOf(t, got.Status, "DONE", "DEAD")
	}
	expect.Len(t, expect.Result(audit.Of(s.store).Check(t.Context())).Value(t), 0, "findings of the audit")
}

// A task is claimed only by workers that have all of its tags.
func TestTags(t *testing.T) {
	s := newSite(t)
	both, one, none := s.submit("q", `{}`, `"tags":["gpu","ssd"]`), s.submit("q", `{}`, `"tags":["gpu"]`), s.submit("q", `{}`)
	s.register("plain", "q", "")
	s.register("gpu", "q", `,"tags":["gpu","x"]`)
	s.register("full", "q", `,"tags":["ssd","gpu"]`)
	expect.Equal(t, s.mustClaim("plain", "q", 1)[0].TaskID, none)
	expect.Len(t, s.claim("plain", "q", 5), 0, "claimed without tags")
	expect.Equal(t, s.mustClaim("gpu", "q", 1)[0].TaskID, one)
	expect.Len(t, s.claim("gpu", "q", 5), 0, "claimed with one of two tags")
	expect.Len(t, s.claim("unknown", "q", 5), 0, "a worker that registers by claiming has no tags")
	expect.Equal(t, s.mustClaim("full", "q", 1)[0].TaskID, both)

	odd := `["region:eu","100 %25, or \u0001;so"," ","` + strings.Repeat(",", 64) + `"]`
	id := s.submit("q", `{}`, `"tags":`+odd)
	s.register("near", "q", `,"tags":["region:eu","100 %, or \u0001;so"," "]`)
	s.register("odd", "q", `,"tags":`+odd)
	expect.Len(t, s.claim("near", "q", 5), 0, "claimed with other tags")
	expect.Equal(t, s.mustClaim("odd", "q", 1)[0].TaskID, id)
	for _, path := range []string{"/tasks/v1/" + id, "/workers/v1"} {
		text := s.must(200, "GET", path, "")
		for _, tag := range []string{`"region:eu"`, `"100 %25, or \u0001;so"`, `" "`, `"` + strings.Repeat(",", 64) + `"`} {
			expect.Contains(t, text, tag, path)
		}
	}
}

// The deadline ends a task that is still PENDING, and no other.
func TestDeadline(t *testing.T) {
	s := newSite(t)
	past := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	late := s.submit("late", `{}`, `"deadline":"`+past+`"`)
	s.round()
	got := s.mustBe(late, "DEAD", 0)
	expect.True(t, got.FinishedAt != nil, got)
	expect.Equal(t, got.LastError, nil)
	expect.Len(t, s.claim("w", "late", 1), 0, "claimed")
	soon := s.submit("q", `{}`, `"deadline":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)+`"`)
	s.mustClaim("w", "q", 1)
	s.redis.HSet(t.Context(), s.store.Keys.Task(2), "claim_before", expect.Result(s.store.Now(t.Context())).Value(t).Add(-1).String())
	s.round()
	s.mustBe(soon, "RUNNING", 1)
	s.fail(204, soon, "w") // it is PENDING again, and its deadline has passed
	s.round()
	s.mustBe(soon, "DEAD", 1)
	waits := s.submit("q", `{}`, `"deadline":"2126-01-01T00:00:00Z"`)
	s.round()
	s.mustBe(waits, "PENDING", 0)
}

// Finished tasks are removed after their time: seven days, or keep_finished of the configuration.
func TestRetention(t *testing.T) {
	s := newSite(t)
	id := s.submit("q", `{}`)
	s.mustClaim("w", "q", 1)
	s.complete(204, id, "w")
	stored := testspace.Read(t, s.store, 1)
	expect.Equal(t, stored.KeepFinished, task.Seconds(7*24*3600))
	due := task.Time(s.redis.ZScore(t.Context(), s.store.Keys.Due(), "1").Val())
	expect.Equal(t, due.Sub(stored.EndedAt()), stored.KeepFinished, "when the server removes it")

	cfg := testspace.Config(t, redistest.Shared(t))
	cfg.TaskDefaults.KeepFinished = 0.001
	short := siteIn(t, cfg)
	id = short.submit("q", `{}`)
	short.mustClaim("w", "q", 1)
	short.complete(204, id, "w")
	expect.Eventually(t, "the task is removed", func() bool {
		short.round()
		status, _ := short.call("GET", "/tasks/v1/"+id, "")
		return status == 404
	})
}

// Lists show the newest tasks first, by queue and status, up to a limit.
func TestLists(t *testing.T) {
	s := newSite(t)
	ids := map[string][]string{}
	for i := range 6 {
		queue := []string{"a", "b"}[i%2]
		ids[queue] = append(ids[queue], s.submit(queue, `{}`, `"maxAttempts":1`))
	}
	expect.Result(s.store.Open(t.Context(), "m", task.Defaults("p", "rsync:/p/run.sh", "1"))).OK(t) // a task of TDF, which Taskmaster does not show
	claims := s.mustClaim("w", "a", 2)
	s.complete(204, claims[0].TaskID, "w")
	s.fail(204, claims[1].TaskID, "w")
	s.mustClaim("w", "b", 1)
	a, b := ids["a"], ids["b"]
	for query, want := range map[string][]string{
		"":                                {b[2], a[2], b[1], a[1], b[0], a[0]},
		"?limit=2":                        {b[2], a[2]},
		"?limit=100000":                   {b[2], a[2], b[1], a[1], b[0], a[0]},
		"?queue=a":                        {a[2], a[1], a[0]},
		"?queue=a&status=PENDING":         {a[2]},
		"?queue=a&status=DONE":            {a[0]},
		"?queue=a&status=DEAD":            {a[1]},
		"?queue=b&status=RUNNING":         {b[0]},
		"?queue=b&status=PENDING&limit=1": {b[2]},
		"?status=PENDING":                 {b[2], a[2], b[1]},
		"?status=RUNNING":                 {b[0]},
		"?status=DONE":                    {a[0]},
		"?status=DEAD&limit=5":            {a[1]},
		"?queue=none":                     {},
	} {
		var got []string
		for _, x := range webtest.Decode[[]taskJSON](t, s.must(200, "GET", "/tasks/v1"+query, "")) {
			got = append(got, x.TaskID)
		}
		expect.True(t, slices.Equal(got, want), query, "got", got, "want", want)
	}
}

// A queue's counts are right as soon as a call is answered.
func TestQueues(t *testing.T) {
	s := newSite(t)
	expect.Equal(t, s.must(200, "GET", "/queues/v1", ""), "[]\n")
	for i := range 5 {
		s.submit("q", `{}`, fmt.Sprintf(`"maxAttempts":%d`, 1+i%2))
	}
	s.submit("default", `{}`)
	claims := s.mustClaim("w", "q", 3)
	s.complete(204, claims[0].TaskID, "w")
	s.fail(204, claims[1].TaskID, "w") // it may run again
	s.register("idle", "empty", "")
	s.register("silent", "empty", "")
	s.silence("silent", 3*time.Minute)
	const want = `[{"queueName":"default","pending":1,"running":0,"failed":0,"dead":0,"activeWorkers":0},` +
		`{"queueName":"empty","pending":0,"running":0,"failed":0,"dead":0,"activeWorkers":1},` +
		`{"queueName":"q","pending":3,"running":1,"failed":1,"dead":0,"activeWorkers":1}]` + "\n"
	expect.Equal(t, s.must(200, "GET", "/queues/v1", ""), want)
	s.fail(204, claims[2].TaskID, "w")
	expect.Contains(t, s.must(200, "GET", "/queues/v1", ""), `{"queueName":"q","pending":3,"running":0,"failed":1,"dead":1,"activeWorkers":1}`)
}

// Tasks are TDF's tasks: its tools see them, and its workers with a handler for the program run them.
func TestTasksOfTDF(t *testing.T) {
	s := newSite(t)
	id := s.submit("q", `{"a":"it's"}`)
	offer := &class.Offer{Queues: []class.QueueShare{{Queue: "q"}}, Handlers: []string{"taskmaster"}}
	c := expect.Result(s.store.Claim(t.Context(), redisstate.ClaimParams{Worker: "tdf", Most: 1, Lease: 60, Offer: offer})).Value(t)
	expect.MustLen(t, c.Claims, 1, "claimed")
	args := expect.Result(task.SplitInput(c.Claims[0].Task.Input)).Value(t)
	expect.Equal(t, fmt.Sprint(args), `[{"a":"it's"}]`, "arguments")
	s.mustBe(id, "RUNNING", 1)
	s.complete(409, id, "tdf")
	m := expect.Result(rules.Execute(c.Claims[0].Task, c.Claims[0].ID, rules.Result{Exit: "0", Output: "text", JSON: `{"n":1}`})).Value(t)
	testspace.Apply(t, s.store, m, nil)
	s.round()
	expect.Equal(t, fmt.Sprint(s.mustBe(id, "DONE", 1).Result), "map[n:1]")
	one := expect.Result(s.manager.Get(t.Context(), 1)).Value(t)
	expect.Equal(t, fmt.Sprintln(one.Queue, one.Group, one.Program), "q taskmaster/q taskmaster\n")
}
