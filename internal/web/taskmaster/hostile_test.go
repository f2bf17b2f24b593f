package taskmaster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

// An invalid call changes nothing, and says why in problem details.
func TestInvalidCalls(t *testing.T) {
	s := newSite(t)
	const payload = `,"payload":1`
	id := s.submit("q", `{}`)
	other := serialSite(t)
	foreign := other.submit("q", `{}`) // of another namespace
	expect.Result(s.manager.Open(t.Context(), manager.Definition{Program: "p", Source: "rsync:/p/run.sh"})).OK(t)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/tasks/v1", ``, 400},
		{"POST", "/tasks/v1", `[]`, 400},
		{"POST", "/tasks/v1", `{"payload":{}}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q"}`, 400},
		{"POST", "/tasks/v1", `{"queueName":" ","payload":{}}`, 400},
		{"POST", "/tasks/v1", `{"queueName":7` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"a b"` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"` + strings.Repeat("q", 65) + `"` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","maxAttempts":0` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","maxAttempts":-1` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","maxAttempts":1e30` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","priority":2147483648` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","deadline":"soon"` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","tags":[""]` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","tags":["` + strings.Repeat("t", 65) + `"]` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","tags":["` + strings.Join(strings.Split(strings.Repeat("t", 17), ""), `1","`) + `"]` + payload + `}`, 202}, // equal tags count once
		{"POST", "/tasks/v1", `{"queueName":"q","tags":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"]` + payload + `}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","payload":"` + strings.Repeat("x", 128<<10) + `"}`, 400},
		{"POST", "/tasks/v1", `{"queueName":"q","payload":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
		{"POST", "/tasks/v1", `{"queueName":"q","payload":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, 400},
		{"POST", "/tasks/v1/claim", `{"queueName":"q","maxTasks":1}`, 400},
		{"POST", "/tasks/v1/claim", `{"workerId":" ","queueName":"q","maxTasks":1}`, 400},
		{"POST", "/tasks/v1/claim", `{"workerId":"w","maxTasks":1}`, 400},
		{"POST", "/tasks/v1/claim", `{"workerId":"w","queueName":"q","maxTasks":0}`, 400},
		{"POST", "/tasks/v1/claim", `{"workerId":"w","queueName":"q","maxTasks":101}`, 400},
		{"POST", "/tasks/v1/claim", `{"workerId":"` + strings.Repeat("w", 101) + `","queueName":"q","maxTasks":1}`, 400},
		{"POST", "/workers/v1/register", `{"workerId":"w"}`, 400},
		{"POST", "/workers/v1/register", `{"queueName":"q"}`, 400},
		{"POST", "/workers/v1/register", `{"workerId":"w","queueName":"q","maxConcurrency":0}`, 400},
		{"POST", "/workers/v1/register", `{"workerId":"w","queueName":"q","tags":[""]}`, 400},
		{"POST", "/workers/v1/nobody/heartbeat", ``, 404},
		{"POST", "/tasks/v1/" + id + "/complete", `{}`, 400},
		{"POST", "/tasks/v1/" + id + "/complete", `{"workerId":"w","result":"x"}`, 409},
		{"POST", "/tasks/v1/" + id + "/complete", "{\"workerId\":\"w\",\"result\":\"caf\xe9\"}", 400},
		{"POST", "/tasks/v1/" + id + "/fail", `{"workerId":"w"}`, 409},
		{"POST", "/tasks/v1/7/complete", `{"workerId":"w"}`, 400},
		{"POST", "/tasks/v1/" + foreign + "/complete", `{"workerId":"w"}`, 404},
		{"GET", "/tasks/v1/1", ``, 400},
		{"GET", "/tasks/v1/" + strings.ReplaceAll(id, "-", ""), ``, 400},
		{"GET", "/tasks/v1/" + id[:35] + "x", ``, 400},
		{"GET", "/tasks/v1/" + foreign, ``, 404},
		{"GET", "/tasks/v1/00000000-0000-0000-0000-000000000000", ``, 404},
		{"GET", "/tasks/v1/f47ac10b-58cc-4372-a567-0e02b2c3d479", ``, 404},
		{"GET", "/tasks/v1/ffffffff-ffff-8fff-bfff-ffffffffffff", ``, 404},
		{"GET", "/tasks/v1?status=OPEN", ``, 400},
		{"GET", "/tasks/v1?limit=0", ``, 400},
		{"GET", "/tasks/v1?limit=x", ``, 400},
		{"GET", "/actuator/metrics/none", ``, 404},
		{"GET", "/actuator/metrics/tasks.failed?tag=queue", ``, 400},
		{"DELETE", "/tasks/v1/" + id, ``, 405},
		{"GET", "/workers/v1/w", ``, 404},
	} {
		status, text := s.call(c.method, c.path, c.body)
		about := fmt.Sprint(c.method, " ", c.path, " ", c.body[:min(len(c.body), 100)])
		expect.Equal(t, status, c.status, about, text)
	}
	counts := expect.Result(s.store.Counts(t.Context())).Value(t)
	expect.Equal(t, counts.String(), "open 3", "the tasks of before, and the one valid task")
	expect.Equal(t, s.must(200, "GET", "/workers/v1", ""), "[]\n", "workers")
	s.mustBe(id, "PENDING", 0)
}

// Each right is needed: other tokens see nothing, and change nothing.
func TestRightsOfTokens(t *testing.T) {
	s := newSite(t)
	id := s.submit("q", `{}`)
	viewer := webtest.AddToken(s, s.manager, access.Token{Name: "viewer", Role: access.Viewer})
	submitter := webtest.AddToken(s, s.manager, access.Token{Name: "ci", Role: access.Submitter})
	worker := webtest.AddToken(s, s.manager, access.Token{Name: "pool", Role: access.Worker, Queues: []string{"q"}})
	const body, claim, report = `{"queueName":"q","payload":1}`, `{"workerId":"w","queueName":"q","maxTasks":1}`, `{"workerId":"w"}`
	for _, c := range []struct {
		token, method, path, body string
		status                    int
	}{
		{viewer, "POST", "/tasks/v1", body, 403},
		{viewer, "POST", "/tasks/v1/claim", claim, 403},
		{viewer, "POST", "/tasks/v1/" + id + "/complete", report, 403},
		{viewer, "POST", "/workers/v1/register", claim, 403},
		{viewer, "POST", "/workers/v1/w/heartbeat", "", 403},
		{viewer, "GET", "/tasks/v1/" + id, "", 200},
		{viewer, "GET", "/workers/v1", "", 200},
		{viewer, "GET", "/queues/v1", "", 200},
		{viewer, "GET", "/actuator/prometheus", "", 200},
		{submitter, "GET", "/tasks/v1/" + id, "", 404}, // the task of another token
		{submitter, "GET", "/workers/v1", "", 403},
		{submitter, "GET", "/queues/v1", "", 403},
		{submitter, "GET", "/actuator/metrics", "", 403},
		{submitter, "POST", "/tasks/v1/claim", claim, 403},
		{worker, "GET", "/tasks/v1/" + id, "", 403},
		{worker, "POST", "/tasks/v1", body, 403},
		{worker, "POST", "/tasks/v1/claim", `{"workerId":"w","queueName":"other","maxTasks":1}`, 403},
		{worker, "POST", "/workers/v1/register", `{"workerId":"w","queueName":"other"}`, 403},
		{"none", "GET", "/tasks/v1/" + id, "", 401},
	} {
		status, text := s.as(c.token, c.method, c.path, c.body)
		expect.Equal(t, status, c.status, c.method, c.path, c.body, text)
	}
	_, text := s.as(submitter, "POST", "/tasks/v1", body)
	own := webtest.Decode[map[string]string](t, text)["taskId"]
	status, _ := s.as(submitter, "GET", "/tasks/v1/"+own, "")
	expect.Equal(t, status, 200, "its own task")
	for _, path := range []string{"/tasks/v1", "/tasks/v1?queue=q"} {
		_, text = s.as(submitter, "GET", path, "")
		expect.Len(t, webtest.Decode[[]taskJSON](t, text), 1, "a submitter lists its own tasks only", path)
	}
	gone := s.submit("q", `{}`)
	expect.NoError(t, s.redis.Del(t.Context(), s.store.Keys.Task(3)).Err())
	answers := map[string]bool{} // a worker does not even learn whether a task of others exists
	for _, of := range []string{id, gone} {
		status, text := s.as(worker, "POST", "/tasks/v1/"+of+"/complete", report, "X-Correlation-Id: same")
		answers[strings.ReplaceAll(fmt.Sprint(status, text), of, "ID")] = true
	}
	expect.Len(t, answers, 1)
	// A worker with the same id, but another token, is another worker.
	_, text = s.as(worker, "POST", "/tasks/v1/claim", claim)
	got := webtest.Decode[struct{ Tasks []claimedTask }](t, text).Tasks
	expect.MustLen(t, got, 1, "claimed")
	s.complete(409, got[0].TaskID, "w")
	status, text = s.as(worker, "POST", "/tasks/v1/"+got[0].TaskID+"/complete", report)
	expect.Equal(t, status, 204, text)
}

// Any JSON is a payload, and comes back as it was, without the blanks between its values; a worker of TDF gets it as its only argument.
func TestPayloads(t *testing.T) {
	s := newSite(t)
	for _, payload := range []string{
		`null`, `true`, `-0.0`, `1e400`, `""`, `[]`, `{}`, `"it's \"quoted\" \\ and $HOME; rm -rf * > x"`, `"\u0000\ud83d\ude00é"`, `{"a":1,"a":2,  "b":[1,{"c":null}]}`,
		"{\n\t\"line\": \"break\"\n}", `"` + strings.Repeat("x", 120<<10) + `"`, `12345678901234567890`,
	} {
		id := s.submit("q", payload)
		got := s.mustClaim("w", "q", 1)[0]
		var want bytes.Buffer
		expect.NoError(t, json.Compact(&want, []byte(payload)))
		expect.Equal(t, got.TaskID, id)
		expect.Equal(t, string(got.Payload), want.String())
		s.complete(204, id, "w")
	}
}
