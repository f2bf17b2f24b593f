package taskmaster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/webtest"
)

type workerView struct {
	WorkerID, QueueName, Status string
	LastHeartbeat               time.Time
	MaxConcurrency              int
	Tags                        []string
}

func (s *site) worker(id string) workerView {
	s.Helper()
	all := webtest.Decode[[]workerView](s, s.must(200, "GET", "/workers/v1", ""))
	i := slices.IndexFunc(all, func(w workerView) bool { return w.WorkerID == id })
	expect.MustTrue(s, i >= 0, "no worker", id, "in", all)
	return all[i]
}

// A registration can be repeated, and changes what the worker says about itself.
func TestRegistration(t *testing.T) {
	s := newSite(t)
	s.register("w", "q", "")
	w := s.worker("w")
	expect.Equal(t, fmt.Sprint(w.QueueName, w.Status, w.MaxConcurrency, w.Tags), "qACTIVE4 []")
	expect.True(t, time.Since(w.LastHeartbeat).Abs() < time.Hour, w.LastHeartbeat)
	s.register("w", "other", `,"maxConcurrency":7,"tags":["a"]`)
	w = s.worker("w")
	expect.Equal(t, fmt.Sprint(w.QueueName, w.Status, w.MaxConcurrency, w.Tags), "otherACTIVE7 [a]")
	expect.Len(t, webtest.Decode[[]workerView](t, s.must(200, "GET", "/workers/v1", "")), 1, "workers")
	s.claim("new", "q", 1) // an unknown worker is registered
	expect.Equal(t, s.worker("new").QueueName, "q")
	s.claim("w", "q", 1) // a known one keeps its registration
	expect.Equal(t, s.worker("w").QueueName, "other")
}

// Any text is the id of a worker.
func TestIDsOfWorkers(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"host-1.example", "w:1/2", "x-w", "a b", "é", "..", "-", strings.Repeat("w", 100), "\x01"} {
		body := fmt.Sprintf(`{"workerId":%s,"queueName":"q"}`, quoted(id))
		s.must(200, "POST", "/workers/v1/register", body)
		expect.Equal(t, s.worker(id).Status, "ACTIVE", id)
		task := s.submit("q", `{}`)
		s.must(200, "POST", "/tasks/v1/claim", strings.Replace(body, "}", `,"maxTasks":1}`, 1))
		s.must(204, "POST", "/tasks/v1/"+task+"/complete", body)
	}
	s.register("a/b", "q", "")
	s.must(204, "POST", "/workers/v1/a%2Fb/heartbeat", "")
}

func quoted(s string) string { return strings.ReplaceAll(fmt.Sprintf("%q", s), `\x01`, `\u0001`) }

// A worker is ACTIVE, STALE after the first threshold, and DEAD after the second one. A heartbeat makes a STALE worker ACTIVE again, and a DEAD one must register.
func TestStatesOfWorkers(t *testing.T) {
	s := newSite(t)
	s.register("w", "q", "")
	for _, c := range []struct {
		silent    time.Duration
		status    string
		heartbeat int
	}{
		{time.Minute, "ACTIVE", 204},
		{3 * time.Minute, "STALE", 204},
		{4 * time.Minute, "STALE", 204},
		{6 * time.Minute, "DEAD", 404},
	} {
		s.silence("w", c.silent)
		expect.Equal(t, s.worker("w").Status, c.status, "silent for", c.silent)
		s.must(c.heartbeat, "POST", "/workers/v1/w/heartbeat", "")
		if c.heartbeat == 204 {
			expect.Equal(t, s.worker("w").Status, "ACTIVE", "after a heartbeat")
		}
	}
	expect.Equal(t, s.worker("w").Status, "DEAD")
	s.register("w", "q", "")
	expect.Equal(t, s.worker("w").Status, "ACTIVE", "after a registration")
	s.silence("w", time.Hour)
	s.claim("w", "q", 1)
	expect.Equal(t, s.worker("w").Status, "ACTIVE", "after a claim")
}

// Failures and losses together use up the attempts.
func TestFailuresAndLossesCountTogether(t *testing.T) {
	s := newSite(t)
	id := s.submit("q", `{}`)
	s.mustClaim("w", "q", 1)
	s.fail(204, id, "w")
	s.mustClaim("w", "q", 1)
	s.silence("w", time.Hour)
	s.round()
	s.mustBe(id, "PENDING", 2)
	s.register("w", "q", "")
	expect.Equal(t, s.mustClaim("w", "q", 1)[0].Attempts, 3, "attempts")
	s.silence("w", time.Hour)
	s.round()
	got := s.mustBe(id, "DEAD", 3)
	expect.True(t, strings.Contains(*got.LastError, "max_attempts"), *got.LastError)
}

// A heartbeat renews the leases of very many tasks, and forgets those that have ended.
func TestManyTasksOfAWorker(t *testing.T) {
	s := newSite(t)
	const n = 250
	for range n {
		s.submit("q", `{}`)
	}
	claims := s.mustClaim("w", "q", n)
	for _, x := range claims[:100] {
		s.complete(204, x.TaskID, "w")
	}
	held := func() int64 { return s.redis.SCard(t.Context(), s.store.Keys.Claims(s.name("w"))).Val() }
	expect.Equal(t, held(), n-100, "held")
	s.silence("w", 3*time.Minute)
	s.must(204, "POST", "/workers/v1/w/heartbeat", "")
	s.silence("w", 3*time.Minute)
	s.round()
	counts := expect.Result(s.store.Counts(t.Context(), "taskmaster/q")).Value(t)
	expect.Equal(t, counts.String(), fmt.Sprintf("running %d succeeded 100", n-100))
	s.silence("w", time.Hour)
	s.round()
	s.register("w", "q", "") // renews what it holds, and finds that it is lost
	expect.Equal(t, held(), 0, "held")
}
