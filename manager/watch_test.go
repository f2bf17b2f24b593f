package manager_test

import (
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

// ended puts tasks that have ended where they would be, each after so many seconds.
func ended(t testing.TB, s *redisstate.Store, first int64, n int, group, state, outcome string, seconds string) {
	t.Helper()
	for i := range n {
		h := tdf.Hash{
			"state": state, "outcome": outcome, "group": group, "program": "p", "source": "rsync:/p/run.sh",
			"0:running": "1000", "0:executed": "2000", "0:seconds": seconds, "0:" + state: "2000", "0:claim": "c",
		}
		if _, err := s.Put(t.Context(), redisstate.Record{ID: first + int64(i), Hash: h}); err != nil {
			t.Fatal(err)
		}
	}
}

func alive(t testing.TB, s *redisstate.Store, name, state string, slots int) {
	t.Helper()
	if _, err := s.TakeName(t.Context(), redisstate.WorkerInfo{Name: name, State: state, Slots: slots, Lease: 3600}, ""); err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	d := m.Define("p", "rsync:/p/run.sh", "")
	d.Group = "g"
	if _, err := m.Open(t.Context(), d, d, d, d, d, d); err != nil {
		t.Fatal(err)
	}
	ended(t, s, 1001, 5, "g", "succeeded", "succeeded", "10")
	ended(t, s, 2001, 5, "other", "succeeded", "succeeded", "99999")
	if claimed, err := s.Claim(t.Context(), redisstate.ClaimRequest{Worker: "w", Most: 2, Lease: 3600}); err != nil || len(claimed.Claims) != 2 {
		t.Fatal(claimed, err)
	}
	alive(t, s, "w", "working", 2)
	alive(t, s, "drains", "draining", 7)
	alive(t, connect(t, cfg), "gone", "gone", 9)
	status, err := m.Watch("g").Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Counts.String() != "open 4 running 2 succeeded 5" || status.Done() != 5 || status.Workers != 2 || status.Slots != 2 || status.Busy != 2 {
		t.Errorf("got %+v", status)
	}
	if e := status.Estimate; e.Unknown != "" || e.Low != 25 || e.High != 30 { // 5 runs of 10 s on two slots, and half a run's tail
		t.Errorf("the estimate is %+v", e)
	}
	if !status.ServerMissing() {
		t.Error("no server is missing")
	}
	if status, err = m.Watch("").Look(t.Context()); err != nil || status.Counts.Total() != 16 {
		t.Errorf("of all tasks: %+v, %v", status, err)
	}
}

// The rate is that of the tasks which ended since the first look, by Redis's clock.
func TestWatchRate(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	ended(t, s, 1, 100, "", "failed", "failed", "1")
	w := m.Watch("")
	first, err := w.Look(t.Context())
	if err != nil || first.Rate != 0 || first.RateSoFar != 0 {
		t.Fatalf("at first: %+v, %v", first, err)
	}
	ended(t, s, 101, 7, "", "failed", "failed", "1")
	second, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := 7 / float64(second.At.Sub(first.At))
	if second.Rate != want || second.RateSoFar != want {
		t.Errorf("the rates are %v and %v, want %v", second.Rate, second.RateSoFar, want)
	}
	if _, err := m.Act(t.Context(), manager.Act{Verb: tdf.VerbReopen}, 1, 2, 3, 4, 5, 6, 7, 8); err != nil {
		t.Fatal(err)
	}
	if third, err := w.Look(t.Context()); err != nil || third.Rate != 0 || third.RateSoFar != 0 {
		t.Errorf("after some were opened again: %+v, %v", third, err)
	}
}

// Of a group, what is open is given up, and nothing else.
func TestCancelOpen(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	d := m.Define("p", "rsync:/p/run.sh", "")
	d.Group = "g"
	for range 3 {
		if _, err := m.Open(t.Context(), many(d, 400)...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Open(t.Context(), m.Define("p", "rsync:/p/run.sh", "")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), redisstate.ClaimRequest{Worker: "w", Most: 5, Lease: 3600}); err != nil {
		t.Fatal(err)
	}
	n, err := m.CancelOpen(t.Context(), "g")
	if n != 1195 || err != nil {
		t.Errorf("cancelled %d, %v", n, err)
	}
	if counts, err := m.Counts(t.Context()); err != nil || counts.String() != "open 1 running 5 expired 1195" {
		t.Errorf("there are %v, %v", counts, err)
	}
	outcomes, err := m.Outcomes(t.Context(), "g")
	if want := map[string]int64{"succeeded": 0, "failed": 0, "timed_out": 0, "cancelled": 1195}; err != nil || !maps.Equal(outcomes, want) {
		t.Errorf("the outcomes are %v, %v", outcomes, err)
	}
}

func many(d tdf.Definition, n int) []tdf.Definition {
	all := make([]tdf.Definition, n)
	for i := range all {
		all[i] = d
	}
	return all
}

func TestOutcomesOfArchivedTasks(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	ended(t, s, 1, 3, "g", "archived", "succeeded", "1")
	ended(t, s, 11, 2, "g", "archived", "failed", "1")
	ended(t, s, 21, 1, "g", "succeeded", "succeeded", "1")
	ended(t, s, 31, 1, "g", "expired", "expired", "1")
	ended(t, s, 41, 9, "other", "archived", "failed", "1")
	outcomes, err := m.Outcomes(t.Context(), "g")
	if want := map[string]int64{"succeeded": 4, "failed": 2, "timed_out": 0, "expired": 1}; err != nil || !maps.Equal(outcomes, want) {
		t.Errorf("the outcomes are %v, %v", outcomes, err)
	}
}

func TestStats(t *testing.T) {
	r, err := embedded.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, addr := range map[string]string{"real": redistest.Shared(t), "embedded": r.Addr()} {
		t.Run(name, func(t *testing.T) {
			cfg := redisConfig(t, addr)
			m, s := newManager(t, cfg), connect(t, cfg)
			checkStats(t, cfg, m, s)
			stats, err := m.Stats(t.Context())
			if err != nil || (stats.Memory.Used > 0) != (name == "real") {
				t.Errorf("memory %+v, %v", stats.Memory, err)
			}
			if diagnoses, err := m.Diagnose(t.Context()); err != nil || len(diagnoses) < 4 {
				t.Errorf("diagnoses %v, %v", diagnoses, err)
			}
		})
	}
}

func checkStats(t *testing.T, cfg config.Manager, m *manager.Manager, s *redisstate.Store) {
	t.Helper()
	ctx := t.Context()
	now, err := m.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	early, late := now.Add(-500).String(), now.Add(-100).String()
	records := []redisstate.Record{
		{ID: 1, Hash: tdf.Hash{"state": "open", "0:open": early}},
		{ID: 2, Hash: tdf.Hash{"state": "open", "0:open": late, "start_after": "9000000000"}},
		{ID: 3, Hash: tdf.Hash{"state": "failed", "0:failed": now.Add(-30).String()}},
		{ID: 4, Hash: tdf.Hash{"state": "archived", "0:archived": now.Add(-50).String()}},
		{ID: 5, Hash: tdf.Hash{"state": "succeeded", "0:succeeded": early}},
	}
	if _, err := s.Put(ctx, records...); err != nil {
		t.Fatal(err)
	}
	if _, err := m.PutProgram(ctx, []byte("12345")); err != nil {
		t.Fatal(err)
	}
	alive(t, s, "w", "working", 3)
	client(t, cfg).ZAdd(ctx, cfg.Namespace+":due", redis.Z{Score: float64(now.Add(-40)), Member: "1"})
	if err := s.SeenServer(ctx, "server", now); err != nil {
		t.Fatal(err)
	}
	stats, err := m.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if stats.Counts.String() != "open 2 succeeded 1 failed 1 archived 1" || stats.Server != now ||
		stats.Workers["working"] != 1 || stats.Slots != 3 || stats.Busy != 0 || stats.Programs != 1 || stats.ProgramBytes != 5 {
		t.Errorf("got %+v", stats)
	}
	since := stats.At.Sub(now)
	if stats.Waited < 500 || stats.Waited > 500+since+1e-3 || stats.DueLag < 40 || stats.DueLag > 40+since+1e-3 {
		t.Errorf("waited %v, behind by %v", stats.Waited, stats.DueLag)
	}
	if stats.Rate*60 < 1 || stats.Rate*60 > 2.01 {
		t.Errorf("%v are done in a minute", stats.Rate*60)
	}
}
