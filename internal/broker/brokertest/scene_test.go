package brokertest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/internal/web/skuld"
	"github.com/tdf-framework/tdf/internal/web/taskmaster"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/redisstate"
)

// A scene is a namespace in which workers of one kind work. Its server makes a round only when the row says so.
type scene struct {
	*testing.T
	kind   *kind
	cfg    config.Manager
	store  *redisstate.Store
	redis  *redis.Client
	server *server.Server

	proxy *redistest.Proxy // between the workers and Redis, after bad; otherwise nil
	api   func() *site     // started with its first use
}

// A site is an API with its interfaces, and the token of the scene's workers.
type site struct {
	http.Handler
	token string
}

// queue is the queue of all tasks and workers, unless a row says something else.
const queue = "q"

func newScene(t *testing.T, k *kind, addr string) *scene {
	s := &scene{T: t, kind: k}
	s.on(addr)
	s.api = sync.OnceValue(s.newSite)
	return s
}

// on makes the namespace, in the Redis at addr.
func (s *scene) on(addr string) {
	s.cfg = testspace.Config(s, addr)
	s.store, s.redis = testspace.Connect(s, s.cfg), testspace.Client(s, s.cfg)
	s.server = server.New("server", config.Server{}, s.store, testspace.Silent)
}

// bad lets the scene's workers reach Redis only through a proxy, with which the row disturbs the connections.
func (s *scene) bad() *redistest.Proxy {
	s.proxy = redistest.NewProxy(s, s.cfg.Redis.Addr())
	return s.proxy
}

// workerRedis returns the configuration with which workers reach Redis.
func (s *scene) workerRedis() config.Redis {
	r := s.cfg.Redis
	if s.proxy != nil {
		r.Host, r.Port = split(s, s.proxy.Addr)
	}
	return r
}

func (s *scene) newSite() *site {
	cfg := s.cfg
	cfg.Redis = s.workerRedis()
	m := testspace.Manager(s, cfg)
	o := web.Options{Timeout: time.Hour, Log: testspace.Silent, Interfaces: []wire.Interface{
		skuld.New("/skuld", m),
		taskmaster.New(m, taskmaster.Options{
			Prefix: "/taskmaster", Stale: time.Minute, Dead: dead, Timeout: time.Hour, Log: testspace.Silent,
		}),
	}}
	token := access.Token{Name: "pool", Role: access.Worker, Queues: []string{queue, "other"}}
	return &site{web.New(m, o), webtest.AddToken(s, m, token)}
}

// open opens a task that the scene's workers can run. It may run twice.
func (s *scene) open(change ...func(*task.Properties)) int64 {
	s.Helper()
	d := task.Defaults("p", "", "")
	d.Queue, d.FailOn, d.MaxFails, d.MaxLosses = queue, task.FailOnExit, 1, 1
	if s.kind.task != nil {
		s.kind.task(&d)
	}
	for _, c := range change {
		c(&d)
	}
	return expect.Result(s.store.Open(s.Context(), "test", d)).Value(s)[0]
}

func (s *scene) task(id int64) *task.Task {
	s.Helper()
	return testspace.Read(s, s.store, id)
}

// is checks the state of a task, its round, and what is counted.
func (s *scene) is(id int64, want string) *task.Task {
	s.Helper()
	t := s.task(id)
	expect.Equal(s, summary(t), want, "task", id, t.LastError(), t.Log)
	return t
}

// summary returns a task's state and round, and what is counted, as in "open 1 fails 1".
func summary(t *task.Task) string {
	text := fmt.Sprint(t.State, " ", t.Round)
	for i, n := range []int{t.Fails, t.Timeouts, t.Losses, t.Releases, t.UnfitHosts, t.Reopens} {
		if n > 0 {
			text += fmt.Sprint(" ", []string{"fails", "timeouts", "losses", "releases", "unfit", "reopens"}[i], " ", n)
		}
	}
	return text
}

// settles makes rounds of the server until a task is as wanted.
func (s *scene) settles(id int64, want string) *task.Task {
	s.Helper()
	expect.Eventually(s, "the task is settled as "+want, func() bool {
		s.round()
		return summary(s.task(id)) == want
	}, func() any { return summary(s.task(id)) })
	return s.task(id)
}

// startsElsewhere notes that the program of a task has started elsewhere, so that it is not held, and ends the delay of
// the task.
func (s *scene) startsElsewhere(id int64) {
	s.Helper()
	for _, key := range []string{s.store.Keys.List(task.Open), s.store.Keys.Later()} {
		due := redis.Z{Score: float64(s.now() - 1), Member: id}
		expect.NoError(s, s.store.Conn.Redis.ZAddXX(s.Context(), key, due).Err())
	}
	s.round()
	testspace.StartedSource(s, s.store, s.task(id).SourceName())
}

// round makes a round of the server.
func (s *scene) round() {
	s.Helper()
	expect.Result(s.server.RunOnce(s.Context())).OK(s)
}

func (s *scene) now() task.Time {
	s.Helper()
	return expect.Result(s.store.Now(s.Context())).Value(s)
}

// silence lets all workers be silent for longer than their leases: their last heartbeats, and the leases of running
// tasks, are over since a second.
func (s *scene) silence() {
	s.Helper()
	ctx, now := s.Context(), s.now()
	for _, w := range expect.Result(s.store.Presence.Workers(ctx)).Value(s) {
		seen := now.Add(-w.Lease - 1)
		s.set(s.store.Keys.Worker(w.Name), "seen", seen)
		expect.NoError(s, s.redis.ZAdd(ctx, s.store.Keys.Workers(), redis.Z{Score: float64(seen), Member: w.Name}).Err())
	}
	for _, id := range s.redis.ZRange(ctx, s.store.Keys.List(task.Running), 0, -1).Val() {
		s.set(s.cfg.Namespace+":task:"+id, "lease_until", now.Add(-1))
		s.due(id)
	}
}

// due makes the server examine a task in its next round.
func (s *scene) due(id any) {
	s.Helper()
	z := redis.Z{Score: float64(s.now().Add(-1)), Member: id}
	expect.NoError(s, s.redis.ZAdd(s.Context(), s.store.Keys.Due(), z).Err())
}

func (s *scene) set(key string, pairs ...any) {
	s.Helper()
	for i := range pairs {
		if at, ok := pairs[i].(task.Time); ok {
			pairs[i] = at.String()
		}
	}
	expect.NoError(s, s.redis.HSet(s.Context(), key, pairs...).Err())
}

// apply applies the Move of somebody else, such as an operator.
func (s *scene) apply(m rules.Move, err error) {
	s.Helper()
	testspace.Apply(s, s.store, m, err)
}

// world returns all tasks, and all lists of tasks.
func (s *scene) world() map[string]string {
	s.Helper()
	all, ctx := map[string]string{}, s.Context()
	for _, key := range s.redis.Keys(ctx, s.cfg.Namespace+":task:*").Val() {
		fields := s.redis.HGetAll(ctx, key).Val()
		for _, f := range slices.Sorted(maps.Keys(fields)) {
			all[key] += f + "=" + fields[f] + "\n"
		}
	}
	for _, state := range []task.State{task.Open, task.Running, task.Executed, task.Succeeded, task.Failed} {
		all[string(state)] = fmt.Sprint(s.redis.ZRange(ctx, s.store.Keys.List(state), 0, -1).Val())
	}
	return all
}

// unchanged checks that a call changes no task.
func (s *scene) unchanged(do func()) {
	s.Helper()
	before := s.world()
	do()
	expect.Equal(s, cmp.Diff(before, s.world()), "", "tasks have changed")
}

// count returns the number of tasks.
func (s *scene) count() int {
	s.Helper()
	return len(s.redis.Keys(s.Context(), s.cfg.Namespace+":task:*").Val())
}

// worker returns a worker of the scene's kind, which has not registered yet.
func (s *scene) worker(name string, change ...func(*offer)) worker {
	s.Helper()
	o := offer{name: name, queue: queue}
	for _, c := range change {
		c(&o)
	}
	return s.kind.worker(s, o)
}

// begin returns a new worker, and the round of the task that it has claimed.
func (s *scene) begin(name string) (worker, round) {
	s.Helper()
	w := s.worker(name)
	return w, s.claim(w)
}

// claim returns the round of a task that a worker claims. There must be a task.
func (s *scene) claim(w worker) round {
	s.Helper()
	r := w.claim()
	expect.MustTrue(s, r != nil, "no task was claimed")
	return r
}

// reports checks the answer to a report, and that its copy gets the same answer and changes nothing.
func (s *scene) reports(r round, e ending, want answer) {
	s.Helper()
	expect.Equal(s, r.report(e), want)
	s.copied(r, e, want)
}

func (s *scene) copied(r round, e ending, want answer) {
	s.Helper()
	if s.kind.lacks[copies] == "" {
		s.unchanged(func() { expect.Equal(s, r.report(e), want, "the copy") })
	}
}
