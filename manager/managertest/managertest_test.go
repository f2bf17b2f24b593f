package managertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

const source = "https://example.org/run.sh"

var define = testspace.Define

// The callback opens another task until the program's output is 1000. The test plays the role of the program.
func Example() {
	var t recorder // in a real test, use its *testing.T
	defer t.end()
	tm := managertest.New(&t)
	tm.Program("refine", func(r managertest.Run) managertest.Result {
		if r.Round == 0 {
			return managertest.Result{Error: "no memory left"} // the first round of each task fails
		}
		return managertest.Result{Output: r.Args[0] + "0", Duration: time.Hour}
	})

	m := tm.Manager
	d := define("refine", "https://example.org/refine.tar.gz", "1")
	d.MaxFails = new(1)
	if _, err := m.Open(context.Background(), d); err != nil {
		fmt.Println(err)
	}
	begin := tm.Now()
	err := m.Run(context.Background(), manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, one *manager.Finished) error {
			if one.Output() != "1000" {
				next := one.Definition
				next.Input = one.Output()
				one.Open(next)
			}
			return nil
		},
	})
	for _, one := range tm.Tasks() {
		fmt.Println(one.ID, one.State, one.Round, one.Output())
	}
	fmt.Printf("%v, after %.0f hours\n", err, tm.Now().Sub(begin).Hours())
	// Output:
	// 1 archived 1 10
	// 2 archived 1 100
	// 3 archived 1 1000
	// <nil>, after 3 hours
}

// recorder is a managertest.T that records failures.
type recorder struct {
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()                      {}
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (r *recorder) Errorf(f string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(f, args...))
}
func (r *recorder) Output() io.Writer { return io.Discard }

func (r *recorder) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

// runToArchive runs a task until it is archived, and returns the task. Round i ends with results[i]. If there are more
// rounds than results, the further rounds end with the last result.
func runToArchive(t *testing.T, change func(*manager.Definition), results ...managertest.Result) *manager.Task {
	t.Helper()
	tm := managertest.New(t)
	tm.Program("p", func(r managertest.Run) managertest.Result { return results[min(r.Round, len(results)-1)] })
	d := define("p", source, "x")
	change(&d)
	expect.Result(tm.Manager.Open(t.Context(), d)).OK(t)
	expect.NoError(t, tm.Manager.Run(t.Context(), manager.Callbacks{AllGroups: true}))
	return tm.Tasks()[0]
}

func TestLives(t *testing.T) {
	hangs, fails := managertest.Result{Duration: managertest.Forever}, managertest.Result{Error: "no"}
	lost, good := managertest.Result{Lost: true}, managertest.Result{Output: "yes", Duration: 5 * time.Second}
	for name, c := range map[string]struct {
		change  func(*manager.Definition)
		results []managertest.Result
		outcome string
		counts  [4]int // rounds, fails, timeouts, losses
		took    task.Seconds
	}{
		"succeeds":     {func(*manager.Definition) {}, []managertest.Result{good}, "succeeded", [4]int{0, 0, 0, 0}, 5},
		"fails":        {func(*manager.Definition) {}, []managertest.Result{fails}, "failed", [4]int{0, 1, 0, 0}, 0},
		"fails once":   {func(d *manager.Definition) { d.MaxFails = new(1) }, []managertest.Result{fails, good}, "succeeded", [4]int{1, 1, 0, 0}, 5},
		"exit status":  {func(d *manager.Definition) { d.FailOn = tdf.FailOnExit }, []managertest.Result{{Exit: 3}}, "failed", [4]int{0, 1, 0, 0}, 0},
		"times out":    {func(d *manager.Definition) { d.Timeout = 7 * time.Second; d.MaxTimeouts = new(1) }, []managertest.Result{hangs}, "timed_out", [4]int{1, 0, 2, 0}, 14},
		"late":         {func(d *manager.Definition) { d.Timeout = 4 * time.Second }, []managertest.Result{good}, "timed_out", [4]int{0, 0, 1, 0}, 4},
		"is lost":      {func(d *manager.Definition) { d.MaxLosses = new(1) }, []managertest.Result{lost}, "failed", [4]int{1, 0, 0, 2}, 60},
		"is lost once": {func(*manager.Definition) {}, []managertest.Result{lost, good}, "succeeded", [4]int{1, 0, 0, 1}, 35},
	} {
		t.Run(name, func(t *testing.T) {
			one := runToArchive(t, c.change, c.results...)
			got := [4]int{one.Round, one.Fails, one.Timeouts, one.Losses}
			expect.Equal(t, got, c.counts, c.outcome)
			expect.Equal(t, one.Outcome, c.outcome)
			took := task.For(one.Entered.Sub(one.Opened))
			expect.Compare(t, took, ">=", c.took)
			expect.Compare(t, took, "<=", c.took+0.001)
		})
	}
}

func TestExpiry(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{Duration: 100 * time.Second} })
	early, late := define("p", source, ""), define("p", source, "")
	early.EndBefore = tm.Now().Add(50 * time.Second)
	late.StartAfter = tm.Now().Add(24 * time.Hour)
	expect.Result(tm.Manager.Open(t.Context(), early, late)).OK(t)
	expect.NoError(t, tm.Manager.Run(t.Context(), manager.Callbacks{AllGroups: true}))
	tasks := tm.Tasks()
	expect.MustEqual(t, tasks[0].Outcome, "expired")
	expect.Equal(t, tasks[1].Outcome, "succeeded")
	ran := tasks[1].LastRun().Started
	expect.True(t, ran.Sub(late.StartAfter).Abs() <= 10*time.Microsecond, "the late task ran at", ran, "want", late.StartAfter)
}

// If nothing can proceed, Run ends with an error that says which tasks wait, and why.
func TestStuck(t *testing.T) {
	forever := func(managertest.Run) managertest.Result { return managertest.Result{Duration: managertest.Forever} }
	atOnce := func(managertest.Run) managertest.Result { return managertest.Result{} }
	nothing := func(*testing.T, *manager.Manager) {}
	open := func(d manager.Definition) func(*testing.T, *manager.Manager) {
		return func(t *testing.T, m *manager.Manager) {
			d.Program, d.Source = "p", source
			expect.Result(m.Open(t.Context(), d)).OK(t)
		}
	}
	for name, c := range map[string]struct {
		program   func(managertest.Run) managertest.Result
		arrange   func(*testing.T, *manager.Manager)
		callbacks manager.Callbacks
		want      string
	}{
		"never ends": {forever, nothing, manager.Callbacks{AllGroups: true}, "task 1 (p x) is running: the task's program never ends"},
		"not let go": {atOnce, nothing, manager.Callbacks{
			AllGroups: true, Succeeded: func(context.Context, *manager.Finished) error { return manager.ErrNotYet },
		}, "task 1 (p x) is succeeded: the task's callback does not return nil"},
		"never stops": {atOnce, nothing, manager.Callbacks{
			AllGroups: true, Stop: func(context.Context, manager.Summary) bool { return false },
		}, "all tasks are archived, but Stop does not return true"},
		"unknown program": {nil, nothing, manager.Callbacks{AllGroups: true}, `task 1 needs the program "p"`},
		"limit of 0": {atOnce, func(t *testing.T, m *manager.Manager) {
			expect.NoError(t, m.Limits().Set(t.Context(), "k", tdf.Limit{}))
			open(manager.Definition{LimitKey: "k", Input: "y"})(t, m)
		}, manager.Callbacks{AllGroups: true}, `task 2 (p y) is open: limit: key "k", at most 0 at once`},
		"paused": {atOnce, func(t *testing.T, m *manager.Manager) {
			expect.NoError(t, m.Pauses().Begin(t.Context(), tdf.Everything))
		}, manager.Callbacks{AllGroups: true}, "task 1 (p x) is open: pause: all tasks, by manager"},
		"paused with a limit": {atOnce, func(t *testing.T, m *manager.Manager) {
			expect.NoError(t, m.Limits().Set(t.Context(), "k", tdf.Limit{AtMost: 1}))
			for range 2 {
				open(manager.Definition{LimitKey: "k"})(t, m)
			}
			expect.NoError(t, m.Pauses().Begin(t.Context(), tdf.Everything))
		}, manager.Callbacks{AllGroups: true}, "task 3 (p) is open: pause: all tasks, by manager"},
		"starts too late": {
			atOnce, open(manager.Definition{StartAfter: time.Unix(90e9, 0)}),
			manager.Callbacks{AllGroups: true},
			"task 2 (p) is open: start: not before 4821-12-26 16:00:00",
		},
		"waits for a group": {
			atOnce, func(t *testing.T, m *manager.Manager) {
				open(manager.Definition{Group: "g"})(t, m)
				open(manager.Definition{After: &manager.Dependencies{Group: "g"}})(t, m)
			}, manager.Callbacks{AllGroups: true}, "task 3 (p) is open: dependency: campaign g (not closed yet)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			t.Cleanup(r.end)
			tm := managertest.NewWith(&r, manager.Options{RoundDuration: time.Hour}) // few rounds
			if c.program != nil {
				tm.Program("p", c.program)
			}
			expect.Result(tm.Manager.Open(t.Context(), define("p", source, "x"))).OK(t)
			c.arrange(t, tm.Manager)
			err := tm.Manager.Run(t.Context(), c.callbacks)
			expect.MustLen(t, r.failures, 1, c.want)
			expect.Contains(t, r.failures[0], c.want)
			if c.program != nil {
				expect.Fails(t, err, "", "Run returned no error")
			}
		})
	}
}

// A callback or a function of a stage that always fails ends Run with its error, even while tasks run.
func TestAlwaysFails(t *testing.T) {
	failure := errors.New("out of luck")
	fails := func(context.Context, *manager.Stage) error { return failure }
	opens := func(d manager.Definition) manager.StageFunc {
		return func(_ context.Context, s *manager.Stage) error { s.Open(d); return nil }
	}
	end := func(context.Context, *manager.Stage) error { return nil }
	pipeline := func(start, after manager.StageFunc) func(context.Context, *manager.Manager) error {
		return func(ctx context.Context, m *manager.Manager) error {
			p := m.Pipeline("p")
			p.Start("a", start)
			p.After("a", "", after)
			return p.Run(ctx)
		}
	}
	for name, c := range map[string]struct {
		run  func(context.Context, *manager.Manager) error
		want string
	}{
		"callback": {func(ctx context.Context, m *manager.Manager) error {
			return m.Run(ctx, manager.Callbacks{AllGroups: true, Succeeded: func(context.Context, *manager.Finished) error { return failure }})
		}, "out of luck"},
		"start":              {pipeline(fails, end), "out of luck"},
		"after":              {pipeline(opens(define("p", source, "")), fails), "out of luck"},
		"invalid definition": {pipeline(opens(define("", source, "")), end), "a definition is invalid: program"},
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			t.Cleanup(r.end)
			tm := managertest.New(&r)
			tm.Program("p", func(run managertest.Run) managertest.Result {
				return managertest.Result{Error: strings.Repeat("again", len(run.Task.Input)), Duration: time.Hour}
			})
			d := define("p", source, "runs again")
			d.MaxFails = new(3)
			expect.Result(tm.Manager.Open(t.Context(), d, define("p", source, ""))).OK(t)
			expect.Fails(t, c.run(t.Context(), tm.Manager), c.want)
			expect.Len(t, r.failures, 0)
		})
	}
}

// A task that waits for a group runs at once when the group is complete.
func TestClosedGroup(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{Duration: time.Minute} })
	tm.Program("long", func(managertest.Run) managertest.Result { return managertest.Result{Duration: 1000 * time.Hour} })
	m, begin := tm.Manager, tm.Now()
	first, next := define("p", source, ""), define("p", source, "")
	first.Group, next.After = "g", &manager.Dependencies{Group: "g"}
	expect.Result(m.Open(t.Context(), first, define("long", source, ""))).OK(t)
	expect.Result(m.Open(t.Context(), next)).OK(t)
	expect.NoError(t, m.Run(t.Context(), manager.Callbacks{
		AllGroups: true, Succeeded: func(ctx context.Context, one *manager.Finished) error {
			if one.Group == "g" {
				return m.CloseGroup(ctx, "g")
			}
			return nil
		},
	}))
	expect.Equal(t, tm.Tasks()[2].LastRun().Started.Sub(begin).Round(time.Second), time.Minute)
}

// Open tasks that cannot start keep out no other task, however many they are.
func TestManyPaused(t *testing.T) {
	var r recorder
	t.Cleanup(r.end)
	tm := managertest.NewWith(&r, manager.Options{RoundDuration: time.Hour}) // few rounds
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{} })
	all := make([]manager.Definition, 1100)
	for i := range all {
		all[i] = define("p", source, "")
		all[i].Group = "g"
	}
	m := tm.Manager
	expect.Result(m.Open(t.Context(), all...)).OK(t)
	expect.NoError(t, m.Pauses().Begin(t.Context(), tdf.Pausable{Group: "g"}))
	d := define("p", source, "")
	d.Group = "h"
	expect.Result(m.Open(t.Context(), d)).OK(t)
	expect.NoError(t, m.Run(t.Context(), manager.Callbacks{Groups: []string{"h"}}))
	expect.Fails(t, m.Run(t.Context(), manager.Callbacks{AllGroups: true}), "pause: campaign g, by manager")
	expect.MustLen(t, r.failures, 1)
	expect.Contains(t, r.failures[0], "and 1080 more")
	expect.Equal(t, tm.Tasks()[1100].Outcome, "succeeded")
}

// A campaign halts after as many failures as its user allows.
func TestHalt(t *testing.T) {
	tm := managertest.New(t)
	runs := 0
	tm.Program("p", func(managertest.Run) managertest.Result { runs++; return managertest.Result{Error: "no"} })
	m := tm.Manager
	all := make([]manager.Definition, 11)
	for i := range all {
		all[i] = define("p", source, "")
		all[i].Group, all[i].StartAfter = "g", tm.Now().Add(time.Duration(i)*time.Hour)
	}
	all[10].Group = "h"
	expect.Result(m.Open(t.Context(), all...)).OK(t)
	expect.NoError(t, m.Pauses().Begin(t.Context(), tdf.Pausable{Group: "g", Failures: 2}))
	expect.NoError(t, m.Run(t.Context(), manager.Callbacks{Groups: []string{"h"}}))
	expect.Equal(t, runs, 3)
	paused := expect.Result(m.Pauses().All(t.Context())).Value(t)
	expect.MustLen(t, paused, 1)
	expect.Equal(t, paused[0].Group, "g")
}

func TestAProgramMayLookAtTheTester(t *testing.T) {
	tm := managertest.New(t)
	var states []tdf.State
	tm.Program("p", func(r managertest.Run) managertest.Result {
		states = append(states, tm.Tasks()[0].State)
		_, err := tm.Manager.Cancel(t.Context(), manager.ByIDs(r.Task.ID)...)
		expect.True(t, err == nil, err)
		return managertest.Result{Output: "too late"}
	})
	expect.Result(tm.Manager.Open(t.Context(), define("p", source, ""))).OK(t)
	expect.NoError(t, tm.Manager.Run(t.Context(), manager.Callbacks{AllGroups: true}))
	one := tm.Tasks()[0]
	expect.Equal(t, one.Outcome, task.Cancelled)
	expect.Equal(t, states, []tdf.State{tdf.Running})
}

// If tasks finish at the same time, their callbacks run by ascending id, as numbers. Redis compares the ids as strings,
// so the tester must not rely on the order that Redis returns.
func TestOrderOfResults(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("p", func(r managertest.Run) managertest.Result {
		return managertest.Result{Duration: time.Duration(r.Task.ID%2) * time.Hour}
	})
	for range 12 {
		expect.Result(tm.Manager.Open(t.Context(), define("p", source, ""))).OK(t)
	}
	var ids []int64
	err := tm.Manager.Run(t.Context(), manager.Callbacks{AllGroups: true, Succeeded: func(_ context.Context, one *manager.Finished) error {
		ids = append(ids, one.ID)
		return nil
	}})
	want := []int64{2, 4, 6, 8, 10, 12, 1, 3, 5, 7, 9, 11}
	expect.NoError(t, err)
	expect.Equal(t, ids, want)
}

// Run leaves alone the tasks that it skips, and with InOrder, their callbacks hold up no others.
func TestSkip(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		tm := managertest.New(t)
		tm.Program("p", func(r managertest.Run) managertest.Result {
			return managertest.Result{Duration: time.Duration(r.Task.ID%3) * 1000 * time.Hour}
		})
		for range 6 {
			d := define("p", source, "")
			d.Group = "g"
			expect.Result(tm.Manager.Open(t.Context(), d)).OK(t)
		}
		var ids []int64
		expect.NoError(t, tm.Manager.Run(t.Context(), manager.Callbacks{
			Groups: []string{"g"}, InOrder: inOrder, Skip: func(id int64) bool { return id%3 == 1 || id == 3 },
			Succeeded: func(_ context.Context, one *manager.Finished) error {
				ids = append(ids, one.ID)
				return nil
			},
			Stop: func(context.Context, manager.Summary) bool { return len(ids) == 3 },
		}))
		slices.Sort(ids)
		expect.Equal(t, ids, []int64{2, 5, 6})
		for _, one := range tm.Tasks() {
			expect.Equal(t, one.State == tdf.Archived, slices.Contains(ids, one.ID), one.ID)
		}
	}
}

// An operator requeues a running task. The result of the first worker then arrives too late, and is ignored.
func TestRequeuedElsewhere(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("p", func(r managertest.Run) managertest.Result {
		if r.Round > 0 {
			return managertest.Result{Output: "again", Duration: time.Hour}
		}
		requeued, err := tm.Manager.RequeueElsewhere(t.Context(), r.Task.Ref())
		expect.True(t, requeued.Done == 1, requeued, err)
		return managertest.Result{Output: "too late", Duration: time.Minute}
	})
	expect.Result(tm.Manager.Open(t.Context(), define("p", source, ""))).OK(t)
	expect.NoError(t, tm.Manager.Run(t.Context(), manager.Callbacks{AllGroups: true}))
	one := tm.Tasks()[0]
	expect.Equal(t, one.Round, 1)
	expect.Equal(t, one.Output(), "again")
	expect.MustEqual(t, one.Rounds[0].Worker, "worker-1")
	expect.NotEqual(t, one.Rounds[1].Worker, "worker-1")
}

// Run waits for a task that runs for weeks. Run makes few rounds meanwhile, and in each round the last heartbeat of the
// server is recent.
func TestLongWait(t *testing.T) {
	log := &testlog.Buffer{}
	tm := managertest.NewWith(t, manager.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	tm.Program("p", func(r managertest.Run) managertest.Result {
		return managertest.Result{Duration: time.Duration(r.Task.ID-1) * 1000 * time.Hour}
	})
	d := define("p", source, "")
	expect.Result(tm.Manager.Open(t.Context(), d, d)).OK(t)
	rounds, begin := 0, tm.Now()
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, one *manager.Finished) error {
			if one.ID == 1 && len(tm.In(tdf.Running)) > 0 {
				return manager.ErrNotYet
			}
			return nil
		},
		EndOfRound: func(_ context.Context, s manager.Summary) error {
			rounds = s.Round
			return nil
		},
	})
	took := tm.Now().Sub(begin).Round(time.Second)
	expect.NoError(t, err, took, "and", rounds, "rounds")
	expect.Equal(t, took, 1000*time.Hour, rounds, "rounds")
	expect.Compare(t, rounds, ">=", 20, took)
	expect.Compare(t, rounds, "<=", 200, took)
	expect.True(t, log.Count("server") == 0, "the log says that no server runs", log.String())
}

// A round of the manager may take longer than RoundDuration on the real clock. The test's clock advances nevertheless.
func TestSlowRounds(t *testing.T) {
	const duration = 10 * time.Millisecond
	tm := managertest.NewWith(t, manager.Options{RoundDuration: duration})
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{Duration: time.Hour} })
	expect.Result(tm.Manager.Open(t.Context(), define("p", source, ""))).OK(t)
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		AllGroups: true,
		EndOfRound: func(context.Context, manager.Summary) error {
			for begun := time.Now(); time.Since(begun) <= duration; {
				runtime.Gosched()
			}
			return nil
		},
		Stop: func(_ context.Context, s manager.Summary) bool { return s.Done() || s.Round == 20 },
	})
	n := len(tm.In(tdf.Archived))
	expect.NoError(t, err, n)
	expect.Equal(t, n, 1)
}

// The results, checkpoints and updates of programs reach callbacks and later rounds.
func TestWhatProgramsLeave(t *testing.T) {
	tm := managertest.New(t)
	var checkpoints []string
	tm.Program("p", func(r managertest.Run) managertest.Result {
		checkpoints = append(checkpoints, r.Task.Checkpoint)
		if r.Round == 0 {
			return managertest.Result{Error: "no", JSON: `{"n":1}`, Checkpoint: "half", Updates: []string{"a", "b"}}
		}
		return managertest.Result{JSON: `{"n":2}`, Updates: []string{"c"}, Duration: time.Second}
	})
	d := define("p", source, "")
	d.MaxFails = new(1)
	expect.Result(tm.Manager.Open(t.Context(), d)).OK(t)
	var result string
	err := tm.Manager.Run(t.Context(), manager.Callbacks{AllGroups: true, Succeeded: func(_ context.Context, one *manager.Finished) error {
		result = one.Result()
		return nil
	}})
	expect.NoError(t, err)
	expect.Equal(t, result, `{"n":2}`)
	expect.Equal(t, tm.Tasks()[0].Rounds[0].Result, `{"n":1}`, "result", result)
	expect.Equal(t, checkpoints, []string{"", "half"}, "result", result)
}

func TestResultMustBeJSON(t *testing.T) {
	var r recorder
	t.Cleanup(r.end)
	tm := managertest.New(&r)
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{JSON: "{"} })
	expect.Result(tm.Manager.Open(t.Context(), define("p", source, ""))).OK(t)
	expect.NoError(t, tm.Manager.Run(t.Context(), manager.Callbacks{AllGroups: true}))
	expect.MustLen(t, r.failures, 1)
	expect.Contains(t, r.failures[0], "is not JSON")
}

// The server removes tasks whose retention period is over. Run ends although these tasks no longer exist.
func TestRetention(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{Duration: time.Second} })
	brief, kept := define("p", source, "brief"), define("p", source, "kept")
	brief.KeepArchived = new(time.Duration(0))
	kept.KeepArchived = new(time.Hour)
	expect.Result(tm.Manager.Open(t.Context(), brief, kept)).OK(t)
	called := 0
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		AllGroups: true,
		Succeeded: func(context.Context, *manager.Finished) error { called++; return nil },
		Stop:      func(_ context.Context, s manager.Summary) bool { return s.Done() && s.Round > 3 },
	})
	expect.NoError(t, err, called)
	expect.Equal(t, called, 2)
	for _, one := range tm.Tasks() {
		expect.True(t, one.Input != "brief", "the task with a period of 0 still exists")
	}
}

// A task that times out waits and is removed as a task that fails.
func TestTimeoutsWithBackoffAndRetention(t *testing.T) {
	one := runToArchive(t, func(d *manager.Definition) {
		d.Timeout, d.MaxTimeouts, d.Backoff, d.KeepFinished = time.Second, new(1), new(100*time.Second), new(time.Hour)
	}, managertest.Result{Duration: managertest.Forever})
	took := one.Entered.Sub(one.Opened)
	expect.Equal(t, one.Outcome, "timed_out", took, "want about 102 s")
	expect.Compare(t, took, ">=", 82*time.Second)
	expect.Compare(t, took, "<=", 122*time.Second)
}
