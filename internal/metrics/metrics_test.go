package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// define returns definitions of tasks in a queue.
func define(queue string, n int) (all []manager.Definition) {
	for range n {
		d := testspace.Define("p", "rsync:/p/run.sh", "x")
		d.Queue = queue
		all = append(all, d)
	}
	return all
}

// patient returns the metrics of a manager's namespace, which wait as long as Redis needs.
func patient(m *manager.Manager) *namespace { return &namespace{admin: admin.New(m), wait: time.Hour} }

// text returns the metrics of a manager's namespace.
func text(t testing.TB, m *manager.Manager) string {
	t.Helper()
	return string(expect.Result(Text(patient(m))).Value(t))
}

// valuesOf returns the values of a label of a metric.
func valuesOf(text, metric, label string) (values []string) {
	for _, found := range regexp.MustCompile(`(?m)^`+metric+`\{.*\b`+label+`="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		values = append(values, found[1])
	}
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// The number of labels is bounded, and the other queues count together.
func TestManyQueues(t *testing.T) {
	t.Parallel()
	m := testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	var all []manager.Definition
	for i := range 250 {
		all = append(all, define(fmt.Sprintf("q%d", i), 1)...)
	}
	all = append(append(all, define("busy", 7)...), define("other", 3)...) // the last one has the name that all others share
	expect.Result(m.Open(t.Context(), all...)).OK(t)
	got := text(t, m)
	expect.Contains(t, got, `tdf_tasks{namespace="`+managing.Of(m).Config.Namespace+`",state="open"} 260`)
	for _, metric := range []string{"tdf_queue_open_tasks", "tdf_queue_oldest_wait_seconds", "tdf_queue_tasks", "tdf_transitions_total"} {
		queues := valuesOf(got, metric, "queue")
		expect.Len(t, queues, 201, metric)
		expect.True(t, slices.Contains(queues, "other"), metric, len(queues))
		series := slices.Sorted(slices.Values(regexp.MustCompile(`(?m)^`+metric+`\{[^}]*\}`).FindAllString(got, -1)))
		expect.Len(t, slices.Compact(slices.Clone(series)), len(series), metric, "has a series twice")
	}
	expect.Contains(t, got, `queue="busy",to="open",transition="open"} 7`)
	expect.Contains(t, got, `queue="other",to="open",transition="open"} 54`)
	expect.Contains(t, got, `queue="busy",state="open"} 7`)
	expect.Contains(t, got, `queue="other",state="open"} 54`)
}

// Names and values of other programs in Redis cannot break the format.
func TestForeignValues(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	client := testspace.Client(t, cfg)
	for _, queue := range []string{"a\"} 1\ntdf_up 7", "\xff\xfe", strings.Repeat("x", 100_000)} {
		expect.NoError(t, client.ZAdd(t.Context(), cfg.Namespace+":activity", redis.Z{Score: 5, Member: queue}).Err())
		expect.NoError(t, client.HSet(t.Context(), cfg.Namespace+":activity:"+queue, "made:open:open", "3", "made:", "x", "wait:sum", "-1", "wait:1.000000", "-5").Err())
	}
	expect.NoError(t, client.HSet(t.Context(), cfg.Namespace+":activity:default", "found:lists", "3").Err())
	expect.NoError(t, client.ZAdd(t.Context(), cfg.Namespace+":activity", redis.Z{Score: 5, Member: "default"}).Err())
	got := text(t, m)
	expect.Contains(t, got, `tdf_audit_finds_total{namespace="`+cfg.Namespace+`",kind="lists"} 3`)
	expect.Contains(t, got, `tdf_audit_finds_total{namespace="`+cfg.Namespace+`",kind="state"} 0`)
	expect.Contains(t, got, "\ntdf_up{namespace=")
	expect.True(t, !strings.Contains(got, "\ntdf_up 7"), got)
}

// While Redis does not answer, a scrape succeeds and says so, without the address of Redis.
func TestWithoutRedis(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, "127.0.0.1:1")
	m := testspace.Manager(t, cfg)
	w := httptest.NewRecorder()
	Process{Log: testspace.Silent}.handler(&namespace{admin: admin.New(m), wait: testspace.Soon}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body := expect.Result(io.ReadAll(w.Result().Body)).Value(t)
	expect.Equal(t, w.Code, http.StatusOK)
	expect.Contains(t, string(body), `tdf_up{namespace="`+cfg.Namespace+`"} 0`)
	expect.Contains(t, string(body), "tdf_redis_latency_seconds_count")
	expect.True(t, !strings.Contains(string(body), "127.0.0.1"), string(body))
}

// The page lists exactly the metrics that exist.
func TestPage(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	s := testspace.Connect(t, cfg)
	s.Counters.KeepCounts()
	expect.Result(s.Open(t.Context(), "m", task.Defaults("p", "rsync:/p/run.sh", "x"))).OK(t)
	expect.NoError(t, s.Close())
	w := httptest.NewRecorder()
	Process{Log: testspace.Silent, CertificateEnds: time.Unix(1_700_000_000, 0)}.handler(patient(m)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var exist []string
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (tdf_\w+)`).FindAllStringSubmatch(w.Body.String(), -1) {
		exist = append(exist, found[1])
	}
	page := expect.Result(os.ReadFile("../../docs/metrics.md")).Value(t)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`tdf_.*?) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, name := range regexp.MustCompile("`(tdf_\\w+)`").FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, name[1])
		}
	}
	expect.Equal(t, slices.Sorted(slices.Values(listed)), slices.Sorted(slices.Values(exist)))
	for _, name := range regexp.MustCompile(`tdf_\w+`).FindAllString(string(page), -1) {
		expect.True(t, slices.Contains(exist, strings.TrimSuffix(name, "_bucket")), name)
	}
}

// The metrics of several namespaces are one text, in which each has its own label.
func TestSeveralNamespaces(t *testing.T) {
	t.Parallel()
	a, b := testspace.Manager(t, testspace.Config(t, redistest.Shared(t))), testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	got := string(expect.Result(Text(namespaces{patient(a), patient(b)})).Value(t))
	expect.Equal(t, strings.Count(got, "# TYPE tdf_up "), 1)
	for _, m := range []*manager.Manager{a, b} {
		expect.Contains(t, got, `tdf_up{namespace="`+managing.Of(m).Config.Namespace+`"} 1`)
	}
}

// A Server serves the metrics at one path until it is closed.
func TestServer(t *testing.T) {
	t.Parallel()
	m := testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	s := expect.Result(listen(t.Context(), "127.0.0.1:0", Process{Log: testspace.Silent, CertificateEnds: time.Unix(1_700_000_000, 0)}.handler(patient(m)), testspace.Silent)).Value(t)
	s.http.ReadTimeout = time.Hour
	ended := make(chan struct{})
	go func() { s.Run(); close(ended) }()
	for path, status := range map[string]int{"/metrics": 200, "/": 404, "/metrics/x": 404} {
		answer := expect.Result(http.Get("http://" + s.Addr() + path)).Value(t)
		expect.NoError(t, answer.Body.Close())
		expect.Equal(t, answer.StatusCode, status, path)
	}
	http.DefaultClient.CloseIdleConnections()
	s.Close()
	<-ended
	_, err := Listen(t.Context(), "nosuch.invalid:1", admin.New(m), testspace.Silent)
	expect.MustTrue(t, err != nil, err)
	expect.True(t, strings.HasPrefix(err.Error(), "serve the metrics: "), err)
}
