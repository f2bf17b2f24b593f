package admin_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// addFinished writes n finished tasks into Redis, each with the given run time in seconds.
func addFinished(t testing.TB, s *redisstate.Store, first int64, n int, group, state, outcome string, seconds string) {
	t.Helper()
	tasks := map[int64]task.Hash{}
	for i := range n {
		tasks[first+int64(i)] = task.Hash{
			"state": state, "outcome": outcome, "group": group, "program": "p", "source": "rsync:/p/run.sh",
			"0:running": "1000", "0:executed": "2000", "0:seconds": seconds, "0:" + state: "2000", "0:claim": "c",
		}
	}
	testspace.PutTasks(t, s, tasks)
}

func alive(t testing.TB, s *redisstate.Store, name, state string, slots int) {
	t.Helper()
	_, _, err := s.Presence.TakeName(t.Context(), presence.WorkerInfo{Name: name, State: state, Slots: slots, Lease: 3600}, presence.PriorOwner{})
	expect.NoError(t, err)
}

// codes returns the codes of the obstacles.
func codes(s admin.Status) string {
	var all []string
	for _, o := range s.Obstacles {
		all = append(all, string(o.Code))
	}
	return fmt.Sprint(all)
}

// addServer writes the heartbeat of a server that counts as alive during the whole test.
func addServer(t testing.TB, s *redisstate.Store) {
	t.Helper()
	now, err := s.Now(t.Context())
	if err == nil {
		err = s.Presence.ServerHeartbeat(t.Context(), "server", now.Add(3600))
	}
	expect.NoError(t, err)
}

func TestWatch(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	d := define("p", "rsync:/p/run.sh", "")
	d.Group = "g"
	expect.Result(m.Open(t.Context(), d, d, d, d, d, d)).OK(t)
	addFinished(t, s, 1001, 5, "g", "succeeded", "succeeded", "10")
	addFinished(t, s, 2001, 5, "other", "succeeded", "succeeded", "99999")
	expect.MustLen(t, expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 2, Lease: 3600})).Value(t).Claims, 2)
	alive(t, s, "w", "working", 2)
	alive(t, s, "drains", "draining", 7)
	alive(t, connect(t, cfg), "gone", "gone", 9)
	status, err := admin.New(m).Watch("g").Look(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, codes(status), "[no_server]")
	expect.Equal(t, status.Estimate.Unknown, "no server is alive")
	addServer(t, s)
	status, err = admin.New(m).Watch("g").Look(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, status.Counts.String(), "open 4 running 2 succeeded 5")
	expect.Equal(t, status.Done(), 5)
	expect.Equal(t, status.Workers, 2)
	expect.Equal(t, status.Slots, 2)
	expect.Equal(t, status.Busy, 2)
	if e := status.Estimate; e.Unknown != "" || e.Low != 25*time.Second || e.High != 30*time.Second { // 50 s of runs take 25 s on two slots, or 30 s if one slot executes 3 of the 5 runs
		t.Errorf("the estimate is %+v", e)
	}
	expect.Equal(t, codes(status), "[]", "with a server and a worker, there are obstacles")
	status, err = admin.New(m).Watch("").Look(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, status.Counts.Total(), 16)
}

// The rate counts the tasks that have finished since the first look, by Redis's clock.
func TestWatchRate(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	addFinished(t, s, 1, 100, "", "failed", "failed", "1")
	w := admin.New(m).Watch("")
	first := expect.Result(w.Look(t.Context())).Value(t)
	expect.MustEqual(t, first.Rate, 0)
	expect.MustEqual(t, first.RateSoFar, 0)
	addFinished(t, s, 101, 7, "", "failed", "failed", "1")
	second := expect.Result(w.Look(t.Context())).Value(t)
	want := 7 / second.At.Sub(first.At).Seconds()
	expect.Compare(t, math.Abs(second.Rate/want-1), "<=", 0.01)
	expect.Compare(t, math.Abs(second.RateSoFar/want-1), "<=", 0.01)
	expect.Result(m.Retry(t.Context(), manager.Changes{}, manager.ByIDs(1, 2, 3, 4, 5, 6, 7, 8)...)).OK(t)
	third := expect.Result(w.Look(t.Context())).Value(t)
	expect.Equal(t, third.Rate, 0)
	expect.Equal(t, third.RateSoFar, 0)
}

func many(d manager.Definition, n int) []manager.Definition {
	all := make([]manager.Definition, n)
	for i := range all {
		all[i] = d
	}
	return all
}

func TestOutcomesOfArchivedTasks(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	addFinished(t, s, 1, 3, "g", "archived", "succeeded", "1")
	addFinished(t, s, 11, 2, "g", "archived", "failed", "1")
	addFinished(t, s, 21, 1, "g", "succeeded", "succeeded", "1")
	addFinished(t, s, 31, 1, "g", "expired", "expired", "1")
	addFinished(t, s, 41, 9, "other", "archived", "failed", "1")
	outcomes, err := admin.New(m).Outcomes(t.Context(), "g")
	want := map[string]int64{"succeeded": 4, "failed": 2, "expired": 1}
	expect.NoError(t, err)
	expect.Equal(t, outcomes, want)
}

func TestStats(t *testing.T) {
	r := expect.Result(embedded.Start("127.0.0.1:0")).Value(t)
	defer r.Close()
	for name, addr := range map[string]string{"real": redistest.Shared(t), "embedded": r.Addr()} {
		t.Run(name, func(t *testing.T) {
			cfg := redisConfig(t, addr)
			m, s := newManager(t, cfg), connect(t, cfg)
			checkStats(t, cfg, m, s)
			expect.Equal(t, expect.Result(admin.New(m).Stats(t.Context())).Value(t).Memory.Used > 0, name == "real")
			expect.Compare(t, len(expect.Result(admin.New(m).Diagnose(t.Context())).Value(t)), ">=", 4)
		})
	}
}

func checkStats(t *testing.T, cfg config.Manager, m *manager.Manager, s *redisstate.Store) {
	t.Helper()
	ctx := t.Context()
	now := expect.Result(s.Now(ctx)).Value(t)
	early, late := now.Add(-500).String(), now.Add(-100).String()
	testspace.PutTasks(t, s, map[int64]task.Hash{
		1: {"state": "open", "0:open": early},
		2: {"state": "open", "0:open": late, "start_after": "9000000000"},
		3: {"state": "failed", "0:failed": now.Add(-30).String()},
		4: {"state": "archived", "0:archived": now.Add(-50).String(), "outcome": "expired", "0:expired": late, "1:expired": now.Add(-51).String(), "1:archived": now.Add(-50).String(), "round": "1"},
		5: {"state": "succeeded", "0:succeeded": early},
	})
	expect.Result(program.Put(ctx, m, []byte("12345"))).OK(t)
	alive(t, s, "w", "working", 3)
	client(t, cfg).ZAdd(ctx, cfg.Namespace+":due", redis.Z{Score: float64(now.Add(-40)), Member: "1"})
	expect.NoError(t, s.Presence.ServerHeartbeat(ctx, "server", now))
	stats := expect.Result(admin.New(m).Stats(ctx)).Value(t)
	if stats.Counts.String() != "open 2 succeeded 1 failed 1 archived 1" || task.At(stats.Server) != now ||
		stats.Workers["working"] != 1 || stats.Slots != 3 || stats.Busy != 0 || stats.Programs != 1 || stats.ProgramBytes != 5 {
		t.Errorf("got %+v", stats)
	}
	since := task.At(stats.At).Sub(now)
	w, d := task.For(stats.Waited), task.For(stats.DueLag)
	expect.Compare(t, w, ">=", 500)
	expect.Compare(t, w, "<=", 500+since+1e-3)
	expect.Compare(t, d, ">=", 40)
	expect.Compare(t, d, "<=", 40+since+1e-3)
	expect.Compare(t, stats.Rate*60, ">=", 1)
	expect.Compare(t, stats.Rate*60, "<=", 2.01)
}

// Running tasks of killed workers make no slot of a live worker busy.
func TestStatsOfLostRounds(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	ctx := t.Context()
	now := expect.Result(s.Now(ctx)).Value(t)
	tasks := map[int64]task.Hash{}
	for id, lease := range []task.Seconds{-5, -1, 300} {
		tasks[int64(id+1)] = task.Hash{
			"state": "running", "0:running": now.Add(-60).String(), "0:worker": "w", "0:claim": "c", "lease_until": now.Add(lease).String(),
		}
	}
	testspace.PutTasks(t, s, tasks)
	alive(t, s, "w", "working", 2)
	stats := expect.Result(admin.New(m).Stats(ctx)).Value(t)
	expect.Equal(t, stats.Counts[task.Running], 3)
	expect.Equal(t, stats.Busy, 1)
	expect.Equal(t, stats.Slots, 2)
}

// A watch of all tasks, or of a group, has a separate count of the tasks that may not start yet.
func TestWatchTellsWhatStartsLater(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	now := expect.Result(m.Now(t.Context())).Value(t)
	open := func(group string, start time.Time, n int) {
		d := define("p", "rsync:/p/run.sh", "")
		d.Group, d.StartAfter = group, start
		expect.Result(m.Open(t.Context(), many(d, n)...)).OK(t)
	}
	open("g", now.Add(7*24*time.Hour), 300)
	open("g", time.Time{}, 300)
	open("later", time.Unix(9e9, 0), 10)
	open("soon", time.Time{}, 10)
	for i, group := range []string{"g", "later", "soon"} {
		addFinished(t, s, 10_001+int64(100*i), 5, group, "succeeded", "succeeded", "1")
	}
	alive(t, s, "w", "working", 1)
	addServer(t, s)
	for group, want := range map[string]struct {
		later    int64
		low      task.Seconds
		estimate bool
	}{"": {310, 310, true}, "g": {300, 300, true}, "later": {10, 0, false}, "soon": {0, 10, true}} {
		s, err := admin.New(m).Watch(group).Look(t.Context())
		e := s.Estimate
		expect.NoError(t, err, group)
		expect.Equal(t, s.Later, want.later, group)
		expect.Compare(t, math.Abs(e.Low.Seconds()-float64(want.low)), "<=", 0.001, group)
		expect.Equal(t, e.Unknown == "", want.estimate, group)
	}
}

// If a component of the original TDF settled a task, the state in which the task ended counts as its outcome.
func TestOutcomesOfTheOriginal(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	addFinished(t, s, 1, 3, "g", "succeeded", "", "1")
	addFinished(t, s, 11, 2, "g", "failed", "", "1")
	testspace.PutTasks(t, s, map[int64]task.Hash{21: {"state": "archived", "group": "g", "0:timed_out": "5", "0:archived": "6"}})
	expect.NoError(t, s.Conn.Redis.HDel(t.Context(), s.Keys.Task(21), "outcome").Err())
	outcomes, err := admin.New(m).Outcomes(t.Context(), "g")
	want := map[string]int64{"succeeded": 3, "failed": 2, "timed_out": 1}
	expect.NoError(t, err)
	expect.Equal(t, outcomes, want)
}

// A user or a component of the original TDF may write an open task whose score is not a time. It is unknown how long
// this task has waited, so the task does not count.
func TestWaitedIsKnownOrNot(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s, c := newManager(t, cfg), connect(t, cfg), client(t, cfg)
	alive(t, s, "w", "working", 2)
	c.HSet(t.Context(), cfg.Namespace+":task:1", "id", 1, "state", "open", "round", "0", "program", "p", "source", "rsync:/p/run.sh")
	c.ZAdd(t.Context(), cfg.Namespace+":open", redis.Z{Score: 0, Member: "1"})
	diagnoses := expect.Result(admin.New(m).Diagnose(t.Context())).Value(t)
	for _, d := range diagnoses {
		expect.True(t, d.Subject != "tasks", "for an open task whose score is not a time", d)
	}
	now := expect.Result(s.Now(t.Context())).Value(t)
	for i, h := range []task.Hash{{"0:open": now.Add(-70).String()}, {"0:open": now.Add(-500).String(), "start_after": now.Add(-100).String()}} {
		h["state"] = "open"
		testspace.PutTasks(t, s, map[int64]task.Hash{int64(i + 2): h})
	}
	stats := expect.Result(admin.New(m).Stats(t.Context())).Value(t)
	expect.Compare(t, stats.Waited, ">=", 100*time.Second)
	expect.Compare(t, task.For(stats.Waited), "<=", 100+task.At(stats.At).Sub(now)+1e-3)
}

// The rate does not count a task that was archived just now but finished long ago.
func TestArchivingIsNoRate(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	addFinished(t, s, 1, 600, "", "succeeded", "succeeded", "1")
	for id := range int64(600) {
		move, err := rules.Archive(read(t, s, id+1))
		apply(t, s, move, err)
	}
	expect.Equal(t, expect.Result(admin.New(m).Stats(t.Context())).Value(t).Rate, 0, "all tasks finished long ago, and the rate")
	now := expect.Result(s.Now(t.Context())).Value(t)
	tasks := map[int64]task.Hash{}
	for i := range int64(200) {
		tasks[i+1001] = task.Hash{
			"state": "archived", "outcome": "failed", "0:failed": now.Add(-1).String(), "0:archived": now.Add(1).String(),
		}
	}
	testspace.PutTasks(t, s, tasks)
	expect.Compare(t, expect.Result(admin.New(m).Stats(t.Context())).Value(t).Rate, ">=", 200.0/60)
}

// While the program of the open tasks is held, the watch names the hold and gives no estimate. If another program is held,
// the estimate does not change.
func TestWatchNamesAPause(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	open := func(group, name string) {
		d := define(name, "rsync:/p/run.sh", "")
		d.Group = group
		expect.Result(m.Open(t.Context(), d, d)).OK(t)
	}
	open("paused", "bad")
	open("well", "p")
	addFinished(t, s, 1001, 5, "paused", "failed", "failed", "1")
	addFinished(t, s, 2001, 5, "well", "succeeded", "succeeded", "1")
	addServer(t, s)
	register := func(name, shortage string) {
		t.Helper()
		w := presence.WorkerInfo{Name: name, State: "working", Slots: 1, Lease: 3600, Shortage: shortage}
		_, _, err := s.Presence.TakeName(t.Context(), w, presence.PriorOwner{})
		expect.NoError(t, err)
	}
	look := func(group string) admin.Status {
		t.Helper()
		return expect.Result(admin.New(m).Watch(group).Look(t.Context())).Value(t)
	}
	register("w1", "no space")
	register("w2", "")
	bad := task.Properties{Program: "bad", Source: "rsync:/p/run.sh"}
	for _, worker := range []string{"w1", "w2"} {
		expect.NoError(t, s.Limits.FailedToStart(t.Context(), worker, bad.SourceName(), false, bad.Program, "exit 4"))
	}
	got := look("paused")
	expect.MustLen(t, got.Pauses, 1)
	expect.MustEqual(t, got.Estimate.Unknown, "bad cannot be started")
	expect.Compare(t, got.Pauses[0].Until.Sub(got.At), "<=", time.Second)
	expect.Equal(t, got.Pauses[0].Why, "exit 4 (workers: w2, w1)")
	if got := look("well"); len(got.Pauses) != 0 || got.Estimate.Unknown != "" {
		t.Errorf("with a pause of another program: %+v, %+v", got.Pauses, got.Estimate)
	}
	testspace.StartedSource(t, s, bad.SourceName())
	expect.Len(t, look("paused").Pauses, 0)
	workers := expect.Result(admin.New(m).Workers(t.Context())).Value(t)
	expect.Equal(t, workers[0].Shortage, "no space")
}

// A Status marshals to the same JSON with and without a pointer.
func TestStatusJSON(t *testing.T) {
	s := admin.Status{Counts: task.Counts{task.Open: 2}}
	pointer := expect.Result(json.Marshal(&s)).Value(t)
	expect.Equal(t, string(expect.Result(json.Marshal(s)).Value(t)), string(pointer))
}
