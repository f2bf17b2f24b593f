package admin_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

func onEachRedis(t *testing.T, test func(t *testing.T, m *manager.Manager, s *redisstate.Store)) {
	for name, addr := range map[string]string{"real": redistest.Shared(t), "embedded": testspace.Embedded(t)} {
		t.Run(name, func(t *testing.T) {
			cfg := redisConfig(t, addr)
			test(t, newManager(t, cfg, func(o *manager.Options) { o.Name = "tester" }), connect(t, cfg))
		})
	}
}

// mustOpen opens tasks of a group. The functions change their definitions.
func mustOpen(t *testing.T, m *manager.Manager, group string, change ...func(*manager.Definition)) []int64 {
	t.Helper()
	var all []manager.Definition
	for _, c := range change {
		d := define("p", "rsync:/p/run.sh", "")
		d.Group = group
		c(&d)
		all = append(all, d)
	}
	return expect.Result(testspace.IDs(m.Open(t.Context(), all...))).Value(t)
}

func plain(*manager.Definition) {}

func worker(t *testing.T, s *redisstate.Store, offer class.Offer) {
	t.Helper()
	w := presence.WorkerInfo{Name: "w", State: "working", Slots: 1, Lease: 3600, Offer: offer}
	_, _, err := s.Presence.TakeName(t.Context(), w, presence.PriorOwner{})
	expect.NoError(t, err)
}

// sinceWhen is the part of a text that says when a pause began.
var sinceWhen = regexp.MustCompile(`, [0-9.]+ s ago$`)

// obstacles returns the texts of the obstacles that the first look of a watch finds.
func obstacles(t *testing.T, m *manager.Manager, group string) string {
	t.Helper()
	s := expect.Result(admin.New(m).Watch(group).Look(t.Context())).Value(t)
	var texts []string
	for _, o := range s.Obstacles {
		if o.Code == admin.FactNoServer || o.Code == admin.FactNoWorker {
			continue // the tests of these obstacles are in watch_test.go
		}
		text := sinceWhen.ReplaceAllString(o.Text, "")
		texts = append(texts, text)
		expect.NotEqual(t, o.Fix.Text, "")
		expect.NotEqual(t, o.Code, "")
	}
	return strings.Join(texts, " | ")
}

// A watch names the obstacles of its own tasks: a missing worker, pauses, limits of 0 and groups that are not closed.
func TestWatchNamesObstacles(t *testing.T) {
	onEachRedis(t, func(t *testing.T, m *manager.Manager, s *redisstate.Store) {
		mustBe := func(when, group, want string) {
			t.Helper()
			expect.Equal(t, obstacles(t, m, group), want, when, "group", group)
		}
		mustOpen(t, m, "plain", plain)
		mustOpen(t, m, "queue", plain, func(d *manager.Definition) { d.Queue = "crawl" })
		mustOpen(t, m, "limit", func(d *manager.Definition) { d.LimitKey = "db" }, func(d *manager.Definition) { d.LimitKey = "free" })
		mustBe("without a worker", "queue", "")
		worker(t, s, class.Offer{Programs: true})
		const unserved = "open tasks wait for another worker: no live worker serves the queue crawl"
		mustBe("a queue", "queue", unserved)
		mustBe("a queue", "plain", "")
		mustBe("a queue", "", unserved)

		expect.NoError(t, m.Limits().Set(t.Context(), "db", task.Limit{}))
		mustBe("a limit of 0", "limit", `the limit of key "db" is 0`)
		mustBe("a limit of 0", "plain", "")

		afterPlain := func(d *manager.Definition) { d.After = &manager.Dependencies{Group: "plain"} }
		mustOpen(t, m, "waits", afterPlain, afterPlain)
		mustBe("an open group", "waits", "tasks wait for campaigns that are not closed: plain")
		expect.NoError(t, m.CloseGroup(t.Context(), "plain"))
		mustBe("a closed group", "waits", "")

		expect.NoError(t, m.Pauses().Begin(t.Context(), task.Pausable{Queue: "crawl"}, task.Pausable{Group: "plain"}, task.Pausable{Group: "none"}))
		by := ": paused by tester"
		mustBe("pauses", "queue", unserved+" | queue crawl"+by)
		mustBe("pauses", "plain", "campaign plain"+by)
		mustBe("pauses", "limit", `the limit of key "db" is 0`)
		expect.NoError(t, m.Pauses().Begin(t.Context(), task.Everything))
		mustBe("a pause of the namespace", "limit", "all tasks"+by+` | the limit of key "db" is 0`)
		mustBe("a pause of the namespace", "waits", "")
	})
}

// The number of obstacles is limited, and the search reads only a sample.
func TestWatchNamesFewObstacles(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg)
	worker(t, connect(t, cfg), class.Offer{Programs: true})
	var many []func(*manager.Definition)
	for i := range 200 {
		many = append(many, func(d *manager.Definition) { d.Queue, d.LimitKey = fmt.Sprint("q", i), fmt.Sprint("k", i) })
		expect.NoError(t, m.Limits().Set(t.Context(), fmt.Sprint("k", i), task.Limit{}))
	}
	mustOpen(t, m, "g", many...)
	for _, group := range []string{"g", ""} {
		expect.Equal(t, strings.Count(obstacles(t, m, group), " | ")+1, 10, "group", group, "obstacles")
	}
}

// The JSON of a status has obstacles only if there are any.
func TestObstaclesInJSON(t *testing.T) {
	s := admin.Status{Counts: task.Counts{task.Open: 2}}
	text, err := json.Marshal(s)
	expect.NoError(t, err)
	expect.NotContains(t, string(text), "obstacles")
	s.Obstacles = []admin.Fact{{Code: "c", Text: "a", Fix: admin.Fix{Text: "b"}}}
	text, err = json.Marshal(s)
	expect.NoError(t, err)
	expect.Contains(t, string(text), `"obstacles":[{"code":"c","text":"a","fix":"b"}]`)
}

// The longest wait is that of a task that workers may claim, even if many older tasks wait for another task.
func TestLongestWaitBehindHeldTasks(t *testing.T) {
	m := newManager(t, redisConfig(t, redistest.Shared(t)))
	first := mustOpen(t, m, "first", plain)[0]
	held := func(d *manager.Definition) { d.After = &manager.Dependencies{Tasks: []int64{first}} }
	mustOpen(t, m, "held", slices.Repeat([]func(*manager.Definition){held}, 3*50)...)
	expect.Result(m.Cancel(t.Context(), manager.ByIDs(first)...)).OK(t)
	mustOpen(t, m, "last", plain)
	expect.Compare(t, expect.Result(admin.New(m).Stats(t.Context())).Value(t).Waited, ">", 0)
}
