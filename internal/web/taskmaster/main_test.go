package taskmaster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
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
	"github.com/tdf-framework/tdf/internal/web/taskmaster"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// A site is an API with the interface at /, and a server whose rounds the test makes.
type site struct {
	testing.TB
	cfg     config.Manager
	manager *manager.Manager
	store   *redisstate.Store
	redis   *redis.Client
	server  *server.Server
	handler http.Handler
	token   string // of an operator
}

// newSite returns a site whose back-offs are short, for a test that runs in parallel with others.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	return serialSite(t)
}

func serialSite(t testing.TB) *site {
	t.Helper()
	cfg := testspace.Config(t, redistest.Shared(t))
	cfg.TaskDefaults.Backoff = 0.001
	return siteIn(t, cfg)
}

// siteIn returns another process of a namespace.
func siteIn(t testing.TB, cfg config.Manager) *site {
	t.Helper()
	m := testspace.Manager(t, cfg)
	s := &site{TB: t, cfg: cfg, manager: m, store: managing.Of(m).Store, redis: testspace.Client(t, cfg)}
	s.store.Counters.KeepCounts()
	i := taskmaster.New(m, taskmaster.Options{Prefix: "/", Stale: 2 * time.Minute, Dead: 5 * time.Minute, Timeout: time.Hour, Log: testspace.Silent})
	s.handler = web.New(m, web.Options{Interfaces: []wire.Interface{i}, Timeout: time.Hour})
	s.server = server.New("server", config.Server{}, s.store, testspace.Silent)
	s.token = webtest.AddToken(s, s.manager, access.Token{Name: fmt.Sprintf("op%d", time.Now().UnixNano()), Role: access.Operator})
	return s
}

// call makes a call, and returns the status and the body of the answer.
func (s *site) call(method, path, body string, headers ...string) (int, string) {
	s.Helper()
	return s.as(s.token, method, path, body, headers...)
}

func (s *site) as(token, method, path, body string, headers ...string) (int, string) {
	s.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, webtest.Call(s.Context(), token, method, path, body, headers...))
	text := expect.Result(io.ReadAll(w.Result().Body)).Value(s)
	if w.Code >= 400 {
		expect.Equal(s, w.Header().Get("Content-Type"), "application/problem+json", method, path, string(text))
	}
	return w.Code, string(text)
}

// must makes a call that must have a status, and returns the body.
func (s *site) must(status int, method, path, body string) string {
	s.Helper()
	got, text := s.call(method, path, body)
	expect.MustEqual(s, got, status, method, path, body, text)
	return text
}

// A task has the members that clients read.
type taskJSON struct {
	TaskID, QueueName, Status string
	Result                    any
	LastError                 *string
	Attempts                  int
	Tags                      []string
	CreatedAt                 time.Time
	FinishedAt                *time.Time
}

// submit submits a task, with further members of the body.
func (s *site) submit(queue, payload string, more ...string) (id string) {
	s.Helper()
	body := fmt.Sprintf(`{"queueName":%q,"payload":%s%s}`, queue, payload, strings.Join(append([]string{""}, more...), ","))
	answer := webtest.Decode[map[string]string](s, s.must(202, "POST", "/tasks/v1", body))
	expect.Equal(s, answer["status"], "PENDING")
	return answer["taskId"]
}

func (s *site) get(id string) taskJSON {
	s.Helper()
	return webtest.Decode[taskJSON](s, s.must(200, "GET", "/tasks/v1/"+id, ""))
}

func (s *site) mustBe(id, status string, attempts int) taskJSON {
	s.Helper()
	t := s.get(id)
	expect.Equal(s, fmt.Sprintf("%s %d", t.Status, t.Attempts), fmt.Sprintf("%s %d", status, attempts), "task", id)
	return t
}

type claimedTask struct {
	TaskID   string
	Payload  json.RawMessage
	Attempts int
}

func (s *site) claim(worker, queue string, most int) []claimedTask {
	s.Helper()
	body := s.must(200, "POST", "/tasks/v1/claim", fmt.Sprintf(`{"workerId":%q,"queueName":%q,"maxTasks":%d}`, worker, queue, most))
	return webtest.Decode[struct{ Tasks []claimedTask }](s, body).Tasks
}

// mustClaim claims until the worker has got a number of tasks. A claim may return fewer, if Redis has no time.
func (s *site) mustClaim(worker, queue string, n int) (all []claimedTask) {
	s.Helper()
	expect.Eventually(s, fmt.Sprint(n, " tasks are claimed"), func() bool {
		all = append(all, s.claim(worker, queue, max(1, min(100, n-len(all))))...)
		return len(all) >= n
	})
	expect.MustLen(s, all, n, "claimed")
	return all
}

// complete and fail report a task, and expect a status.
func (s *site) complete(status int, id, worker string) {
	s.Helper()
	s.must(status, "POST", "/tasks/v1/"+id+"/complete", fmt.Sprintf(`{"workerId":%q,"result":"ok"}`, worker))
}

func (s *site) fail(status int, id, worker string) {
	s.Helper()
	s.must(status, "POST", "/tasks/v1/"+id+"/fail", fmt.Sprintf(`{"workerId":%q,"error":"boom"}`, worker))
}

func (s *site) register(worker, queue, more string) {
	s.Helper()
	s.must(200, "POST", "/workers/v1/register", fmt.Sprintf(`{"workerId":%q,"queueName":%q%s}`, worker, queue, more))
}

// name returns the name of a worker in Redis.
func (s *site) name(worker string) string {
	s.Helper()
	all := expect.Result(s.store.Presence.Workers(s.Context())).Value(s)
	i := slices.IndexFunc(all, func(w presence.WorkerStatus) bool { return strings.HasSuffix(w.Name, "/"+worker) })
	expect.MustTrue(s, i >= 0, "no worker", worker)
	return all[i].Name
}

// silence makes a worker silent for a time: its last heartbeat, and the leases of its tasks, become older.
func (s *site) silence(worker string, d time.Duration) {
	s.Helper()
	name, ctx := s.name(worker), s.Context()
	now := expect.Result(s.store.Now(ctx)).Value(s)
	s.redis.HSet(ctx, s.store.Keys.Worker(name), "seen", now.Add(-task.For(d)).String())
	s.redis.ZAdd(ctx, s.store.Keys.Workers(), redis.Z{Score: float64(now.Add(-task.For(d))), Member: name})
	for _, id := range s.redis.ZRange(ctx, s.store.Keys.List(task.Running), 0, -1).Val() {
		key := s.cfg.Namespace + ":task:" + id
		round := s.redis.HGet(ctx, key, "round").Val()
		if s.redis.HGet(ctx, key, round+":worker").Val() != name {
			continue
		}
		until := expect.Result(task.ParseTime(s.redis.HGet(ctx, key, "lease_until").Val())).Value(s).Add(-task.For(d))
		s.redis.HSet(ctx, key, "lease_until", until.String())
		s.redis.ZAdd(ctx, s.store.Keys.Due(), redis.Z{Score: float64(until), Member: id})
	}
}

// round makes a round of the server.
func (s *site) round() {
	s.Helper()
	expect.Result(s.server.RunOnce(s.Context())).OK(s)
}
