package taskmaster_test

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
)

// metric returns a statistic of a metric.
func (s *site) metric(name, statistic string, tags ...string) float64 {
	s.Helper()
	query := url.Values{"tag": tags}.Encode()
	of := webtest.Decode[struct {
		Name         string
		Measurements []struct {
			Statistic string
			Value     float64
		}
	}](s, s.must(200, "GET", "/actuator/metrics/"+name+"?"+query, ""))
	expect.Equal(s, of.Name, name)
	for _, m := range of.Measurements {
		if m.Statistic == statistic {
			return m.Value
		}
	}
	s.Errorf("%s has no %s", name, statistic)
	return -1
}

// The metrics are right as soon as a call is answered, for each queue.
func TestMetrics(t *testing.T) {
	s := newSite(t)
	s.register("w", "q", "")
	s.register("v", "q", "")
	s.submit("other", `{}`)
	failing, ok, dying := s.submit("q", `{}`, `"maxAttempts":2`), s.submit("q", `{}`), s.submit("q", `{}`, `"maxAttempts":1`)
	late := s.submit("q", `{}`, `"deadline":"2020-01-01T00:00:00Z"`)
	s.round()
	s.mustBe(late, "DEAD", 0)
	s.mustClaim("w", "q", 3)
	s.fail(204, failing, "w")
	s.complete(204, ok, "w")
	expect.Equal(t, s.metric("tasks.end_to_end.duration", "COUNT", "queue:q"), 2, "ended")
	s.mustClaim("v", "q", 1)
	s.fail(204, failing, "v")
	s.silence("w", time.Hour)
	s.round()
	s.mustBe(dying, "DEAD", 1)
	for _, c := range []struct {
		name, statistic string
		tags            string
		want            float64
	}{
		{"tasks.submitted", "COUNT", "queue:q", 4},
		{"tasks.submitted", "COUNT", "queue:other", 1},
		{"tasks.submitted", "COUNT", "queue:none", 0},
		{"tasks.submitted", "COUNT", "", 5},
		{"tasks.claimed", "COUNT", "queue:q", 4},
		{"tasks.completed", "COUNT", "queue:q", 1},
		{"tasks.failed", "COUNT", "queue:q", 2},
		{"tasks.dead_lettered", "COUNT", "queue:q", 3},
		{"tasks.dead_lettered", "COUNT", "queue:q reason:exhausted", 1},
		{"tasks.dead_lettered", "COUNT", "queue:q reason:worker_dead", 1},
		{"tasks.dead_lettered", "COUNT", "queue:q reason:deadline", 1},
		{"tasks.requeued", "COUNT", "reason:failure", 1},
		{"tasks.requeued", "COUNT", "reason:worker_dead", 0},
		{"workers.registered", "COUNT", "queue:q", 2},
		{"workers.cleaned", "COUNT", "", 0},
		{"tasks.queue.wait", "COUNT", "queue:q", 3},
		{"tasks.execution.duration", "COUNT", "queue:q", 3},
		{"tasks.end_to_end.duration", "COUNT", "queue:q", 4},
	} {
		expect.Equal(t, s.metric(c.name, c.statistic, strings.Fields(c.tags)...), c.want, c.name, c.tags)
	}
	expect.True(t, s.metric("tasks.queue.wait", "TOTAL_TIME", "queue:q") > 0, "no time in the queue")
	expect.True(t, s.metric("tasks.execution.duration", "TOTAL_TIME", "queue:q") > 0, "no run time")

	text := s.must(200, "GET", "/actuator/prometheus", "")
	for _, line := range []string{
		`tasks_submitted_total{queue="q"} 4`, `tasks_dead_lettered_total{queue="q",reason="deadline"} 1`, `tasks_queue_wait_seconds_count{queue="q"} 3`,
		`workers_registered_total{queue="q"} 2`, "# TYPE tasks_completed_total counter", `tasks_end_to_end_duration_seconds_sum{queue="q"} `,
	} {
		expect.Contains(t, text, "\n"+line)
	}
	names := s.must(200, "GET", "/actuator/metrics", "")
	for _, name := range []string{"tasks.submitted", "tasks.cleaned", "tasks.end_to_end.duration"} {
		expect.Contains(t, names, `"`+name+`"`)
	}
}

// Each death of a worker is counted once, by whichever process, and again if the worker dies again.
func TestDeathsAreCountedOnce(t *testing.T) {
	s := newSite(t)
	s.register("w", "q", "")
	s.register("v", "q", "")
	s.silence("w", time.Hour)
	for range 2 {
		expect.Equal(t, s.metric("workers.died", "COUNT"), 1, "deaths")
	}
	s.register("w", "q", "")
	s.silence("w", 10*time.Minute)
	other := siteIn(t, s.cfg)
	expect.Eventually(t, "the counts of both processes are in Redis", func() bool { return other.metric("workers.died", "COUNT") == 2 })
	third := siteIn(t, s.cfg) // looks at all of them again
	expect.Eventually(t, "a third process reads both counts", func() bool { return third.metric("workers.died", "COUNT") >= 2 })
	expect.Equal(t, third.metric("workers.died", "COUNT"), 2, "deaths")
}

// A server with counts of its own runs beside the interface. Each task counts once nevertheless, whichever of them has settled it.
func TestMetricsBesideAServer(t *testing.T) {
	s := newSite(t)
	store := testspace.Connect(t, s.cfg)
	store.Counters.KeepCounts()
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = server.New("other", config.Server{RoundDuration: testspace.Soon}, store, testspace.Silent).Run(ctx)
	})
	defer running.Wait()
	defer end()
	for i := range 10 {
		id, dead := s.submit("q", `{}`), s.submit("q", `{}`, `"maxAttempts":1`)
		s.mustClaim("w", "q", 2)
		s.complete(204, id, "w")
		s.fail(204, dead, "w")
		for _, name := range []string{"tasks.completed", "tasks.dead_lettered"} {
			expect.Eventually(t, name+" has counted the task", func() bool { return s.metric(name, "COUNT", "queue:q") >= float64(i+1) })
			expect.Equal(t, s.metric(name, "COUNT", "queue:q"), float64(i+1), name)
		}
	}
}
