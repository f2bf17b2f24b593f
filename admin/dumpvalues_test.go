package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/redisstate"
)

func must(t *testing.T, err error) {
	t.Helper()
	expect.NoError(t, err)
}

// A dump has the settings, pauses, limits and pins of a namespace, its closed groups, and the records of its stages.
func TestDumpOfOtherValues(t *testing.T) {
	onEachRedis(t, func(t *testing.T, m *manager.Manager, s *redisstate.Store) {
		mustOpen(t, m, "closed", plain, plain)
		mustOpen(t, m, "open", plain)
		a := admin.New(m)
		must(t, a.ChangeSetting(t.Context(), tdf.SettingMaxTasks, "1000"))
		must(t, m.Pause(t.Context(), tdf.Pausable{Queue: "crawl"}, tdf.Pausable{Group: "closed"}))
		must(t, m.SetLimit(t.Context(), "db", tdf.Limit{AtMost: 3}))
		must(t, m.CloseGroup(t.Context(), "closed"))
		stored := expect.Result(program.Put(t.Context(), m, []byte("archive"))).Value(t)
		must(t, program.Pin(t.Context(), m, strings.TrimPrefix(stored, "redis:")))
		dump := dumped(t, m)
		expect.True(t, strings.HasSuffix(dump, `{"end":{"programs":1,"tasks":3,"values":5}}`+"\n"), "dumped", dump)

		cfg := redisConfig(t, redistest.Shared(t))
		var log testlog.Buffer
		target := newManager(t, cfg, testspace.Log(slog.New(slog.NewTextHandler(&log, nil))))
		done, err := admin.New(target).Load(t.Context(), strings.NewReader(dump))
		want := (admin.Loaded{Dumped: admin.Dumped{Programs: 1, Tasks: 3, Values: 5}})
		expect.NoError(t, err)
		expect.MustEqual(t, done, want)
		expect.Equal(t, strings.Count(dumped(t, target), "\n"), strings.Count(dump, "\n"), dump)
		expect.Equal(t, log.String(), "", "logged")
		d := define("p", "rsync:/p/run.sh", "")
		d.Group = "closed"
		expect.Result(target.Open(t.Context(), d)).FailsWith(t, tdf.ErrGroupClosed, "opened in a closed group")
		programs := expect.Result(program.List(t.Context(), target)).Value(t)
		expect.MustLen(t, programs, 1)
		expect.True(t, programs[0].Pinned, "programs", programs)
		claimed := expect.Result(connect(t, cfg).Claim(t.Context(), redisstate.ClaimRequest{Worker: "w", Most: 9, Lease: 3600})).Value(t)
		expect.MustLen(t, claimed.Claims, 1)
		expect.Equal(t, claimed.Claims[0].Task.Group, "open")
	})
}

// A group that was closed during the dump may have tasks that the dump lacks. So the dump leaves out its mark.
func TestDumpLeavesOutLateMarks(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	mustOpen(t, newManager(t, cfg), "g", plain)
	client(t, cfg).HSet(t.Context(), cfg.Namespace+":groups", "g", "closed 9999999999")
	dump, warnings := dumpWithWarnings(t, cfg)
	expect.NotContains(t, dump, `"closed`, "warned", warnings)
	expect.Contains(t, warnings, "a group was closed during the dump; the dump leaves its mark out", dump)
}

// Load changes no value that the namespace already has, and says so. It closes no group without tasks.
func TestLoadKeepsOtherValues(t *testing.T) {
	from, to := redisConfig(t, redistest.Shared(t)), redisConfig(t, redistest.Shared(t))
	m := newManager(t, from)
	mustOpen(t, m, "g", plain)
	must(t, m.CloseGroup(t.Context(), "g"))
	must(t, m.SetLimit(t.Context(), "db", tdf.Limit{AtMost: 3}))
	must(t, m.SetLimit(t.Context(), "same", tdf.Limit{AtMost: 3}))
	client(t, from).HSet(t.Context(), from.Namespace+":groups", "gone", "closed 5")
	client(t, from).HSet(t.Context(), from.Namespace+":limits", "odd", "odd")
	dump, warnings := dumpWithWarnings(t, from)
	expect.Contains(t, warnings, `limit \"odd\": invalid value \"odd\"`, "warned")
	var log testlog.Buffer
	target := newManager(t, to, testspace.Log(slog.New(slog.NewTextHandler(&log, nil))))
	must(t, target.SetLimit(t.Context(), "db", tdf.Limit{AtMost: 7}))
	must(t, target.SetLimit(t.Context(), "same", tdf.Limit{AtMost: 3}))
	done, err := admin.New(target).Load(t.Context(), strings.NewReader(dump))
	expect.NoError(t, err)
	expect.MustEqual(t, done, admin.Loaded{Dumped: admin.Dumped{Tasks: 1, Values: 2}, Kept: 2})
	for _, want := range []string{`kind=limit name=db value="at_most=3" why="the namespace has another value`, `kind=group name=gone value="closed 5" why="the group has no tasks`} {
		expect.Contains(t, log.String(), want, "logged")
	}
	limits := expect.Result(target.Limits(t.Context())).Value(t)
	expect.MustLen(t, limits, 2)
	expect.Equal(t, limits[0].AtMost, 7)
}

// The log of a load names only some of the values that it does not load.
func TestLoadLogsFewValues(t *testing.T) {
	from, to := redisConfig(t, redistest.Shared(t)), redisConfig(t, redistest.Shared(t))
	c := client(t, from)
	for i := range 1200 {
		c.HSet(t.Context(), from.Namespace+":groups", fmt.Sprint("g", i), "closed 5")
	}
	dump := dumped(t, newManager(t, from))
	var log testlog.Buffer
	done := expect.Result(admin.New(newManager(t, to, testspace.Log(slog.New(slog.NewTextHandler(&log, nil))))).Load(t.Context(), strings.NewReader(dump))).Value(t)
	expect.Equal(t, done.Kept, 1200)
	expect.Equal(t, strings.Count(log.String(), "\n"), 20)
}

// finish claims the open tasks and lets them succeed.
func finish(t *testing.T, s *redisstate.Store) {
	t.Helper()
	claimed := expect.Result(s.Claim(t.Context(), redisstate.ClaimRequest{Worker: "w", Most: 100, Lease: 3600})).Value(t)
	for _, c := range claimed.Claims {
		move, err := c.Task.Execute(c.ID, tdf.Result{Output: "out", Exit: "0"})
		apply(t, s, move, err)
		decide(t, s, c.Task.ID)
	}
}

// A pipeline continues after a load. It opens no task twice.
func TestPipelineAfterALoad(t *testing.T) {
	from, to := redisConfig(t, redistest.Shared(t)), redisConfig(t, redistest.Shared(t))
	twoStages := func(m *manager.Manager, starts *int) *manager.Pipeline {
		p := m.Pipeline("p")
		p.Start("a", func(_ context.Context, a *manager.Stage) error {
			*starts++
			for i := range 3 {
				a.Open(define("p", "rsync:/p/run.sh", fmt.Sprint(i)))
			}
			return nil
		})
		p.After("a", "b", func(_ context.Context, b *manager.Stage) error {
			b.Open(define("p", "rsync:/p/run.sh", "b"), define("p", "rsync:/p/run.sh", "b"))
			return nil
		})
		return p
	}
	run := func(p *manager.Pipeline, m *manager.Manager, until func() bool) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		expect.Eventually(t, "the pipeline moves", until)
		cancel()
		<-ended
	}
	count := func(m *manager.Manager, group string) int64 {
		counts := expect.Result(m.Counts(t.Context(), group)).Value(t)
		return counts.Total()
	}
	source, target := newManager(t, from), newManager(t, to)
	starts := 0
	run(twoStages(source, &starts), source, func() bool {
		s, err := source.GroupStatus(t.Context(), "p/a")
		return err == nil && s.Closed
	})
	dump := dumped(t, source)
	expect.Result(admin.New(target).Load(t.Context(), strings.NewReader(dump))).OK(t)
	starts = 0
	finish(t, connect(t, to))
	run(twoStages(target, &starts), target, func() bool { return count(target, "p/b") > 0 })
	if a, b := count(target, "p/a"), count(target, "p/b"); a != 3 || b != 2 || starts != 0 {
		t.Errorf("%d and %d tasks, %d starts; want 3, 2 and none", a, b, starts)
	}
}

// A dump has the definitions of a stage whose tasks are not all opened.
func TestDumpOfStoredDefinitions(t *testing.T) {
	onEachRedis(t, func(t *testing.T, m *manager.Manager, s *redisstate.Store) {
		d := tdf.Defaults("p", "rsync:/p/run.sh", "x")
		d.Group = "p/b"
		for chunk := 1; chunk <= 2; chunk++ { // the tasks of chunk 0 are open
			must(t, s.StoreDefinitions(t.Context(), "NAME", chunk, []tdf.Properties{d, d}))
		}
		_, err := s.RestoreValues(t.Context(),
			redisstate.Value{Kind: redisstate.ValueStage, Name: "p/b", Text: "stored 1 3 NAME"},
			redisstate.Value{Kind: redisstate.ValueStage, Name: "q/b", Text: "stored 5 1000000000 OTHER"})
		must(t, err)
		dump := dumped(t, m)
		expect.Equal(t, strings.Count(dump, `{"definitions":`), 2, "dumped", dump)
		to := redisConfig(t, redistest.Shared(t))
		done := expect.Result(admin.New(newManager(t, to)).Load(t.Context(), strings.NewReader(dump))).Value(t)
		expect.MustEqual(t, done.Values, 4)
		other := connect(t, to)
		all := expect.Result(other.Definitions(t.Context(), "NAME", 1)).Value(t)
		expect.MustLen(t, all, 2)
		expect.Equal(t, all[1].Input, "x")
		expect.Equal(t, client(t, to).TTL(t.Context(), to.Namespace+":definitions:NAME").Val(), -1, "the definitions expire after")
	})
}
