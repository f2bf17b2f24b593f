package manager_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

// Functions that fail are called again after pauses, and do not stop other stages.
func TestStageFunctionsFail(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	p := tm.Manager.Pipeline("p")
	calls := map[string]int{}
	fails := func(name string, then manager.StageFunc) manager.StageFunc {
		return func(ctx context.Context, s *manager.Stage) error {
			switch calls[name]++; calls[name] {
			case 1:
				s.Open(define("p", source, "failed"))
				return errors.New("out of luck")
			case 2:
				s.Open(define("p", source, "panicked"))
				panic("no hope")
			case 3:
				s.Open(define("p", source, "unclosed '"))
			case 4:
				if name != "a" { // Start opens the tasks while its function runs
					s.Open(slices.Repeat([]manager.Definition{define("p", source, "many")}, 3000)...)
				}
				return errors.New("out of luck again")
			default:
				return then(ctx, s)
			}
			return nil
		}
	}
	p.Start("a", fails("a", opens("1", "2")))
	p.After("a", "b", fails("b", opens("3")))
	p.After("b", "", fails("c", nothing))
	p.Start("other", opens("x"))
	p.After("other", "", func(context.Context, *manager.Stage) error {
		expect.True(t, calls["a"] <= 1, "stage other waited for stage a")
		return nil
	})
	must(t, p.Run(t.Context()))
	expect.Equal(t, inputs(tm, "p/a"), "1 2")
	expect.Equal(t, inputs(tm, "p/b"), "3")
	expect.Equal(t, fmt.Sprint(calls), "map[a:5 b:5 c:5]")
	checkArchived(t, tm, 4)
	for want, n := range map[string]int{
		"stage failed; it is tried again after a pause": 12, "out of luck": 6, "panicked: no hope": 3, "pause_seconds=8": 3,
		"a definition is invalid: input: ": 2, "the function after the last stage opens a task": 1,
	} {
		expect.Equal(t, log.Count(want), n, want, "times … in", log.String())
	}
}

// If a function of a stage ends its goroutine, as t.FailNow does, the goroutine that called Run ends.
func TestStageEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	for name, exiting := range map[string]int{"Start": 0, "Each": 1, "After": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tm, _ := newTester(t)
			calls := make([]int, 3)
			call := func(i int) {
				if calls[i]++; i == exiting {
					runtime.Goexit()
				}
			}
			p := tm.Manager.Pipeline("p")
			p.Start("a", func(ctx context.Context, s *manager.Stage) error { call(0); return opens("1")(ctx, s) })
			p.Each("a", func(context.Context, *manager.Finished) error { call(1); return nil })
			p.After("a", "", func(context.Context, *manager.Stage) error { call(2); return nil })
			returned := false
			var running sync.WaitGroup
			running.Go(func() {
				expect.Fails(t, p.Run(t.Context()), "")
				returned = true
			})
			running.Wait()
			expect.True(t, !returned, "Run has returned")
			expect.Equal(t, calls[exiting], 1)
		})
	}
}

// A function can use its stage in several goroutines. After the function has returned, the stage opens no tasks.
func TestStageInGoroutines(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	var late sync.WaitGroup
	many := func(ctx context.Context, s *manager.Stage) error {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 20 {
					s.Open(define("p", source, fmt.Sprint(i, ".", j)))
				}
			})
		}
		all.Wait()
		late.Go(func() {
			<-ctx.Done()
			s.Open(define("p", source, "late"))
		})
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := tm.Manager.Pipeline("p")
	p.Start("a", many)
	p.After("a", "b", many)
	must(t, p.Run(ctx))
	cancel()
	late.Wait()
	for _, group := range []string{"p/a", "p/b"} {
		all := strings.Fields(inputs(tm, group))
		slices.Sort(all)
		expect.Len(t, all, 160, group)
		expect.Len(t, slices.Compact(all), 160, group)
		expect.True(t, !slices.Contains(all, "late"), group, len(all), "tasks")
	}
}

// start runs a pipeline that opens tasks with the inputs 0 to n-1, the first of them with another input. When it has
// opened all of them, or its function has failed, the context ends.
func start(t *testing.T, cfg config.Manager, log *logged, first string, n int) error {
	t.Helper()
	p := newManager(t, cfg, log.option()).Pipeline("p")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	opened := isOpened(t, cfg, "p/a")
	p.Start("a", func(_ context.Context, s *manager.Stage) error {
		for i := range n {
			if i == 0 && first != "0" {
				s.Open(define("p", source, first))
				continue
			}
			s.Open(define("p", source, strconv.Itoa(i)))
		}
		if n == 1300 && first == "0" {
			cancel(errors.New("interrupted"))
		}
		return nil
	})
	p.Start("end", func(context.Context, *manager.Stage) error {
		if !opened() && log.Count("stage=a") == 0 {
			return errors.New("not yet")
		}
		cancel(errors.New("the end"))
		return nil
	})
	return p.Run(ctx)
}

// Start continues where an earlier start ended, if it opens the same definitions.
func TestStartContinues(t *testing.T) {
	t.Parallel()
	addr := testspace.Embedded(t)
	for name, c := range map[string]struct {
		first string           // the input of the first task at the second start
		n     func(is int) int // the number of tasks at the second start, if this number is open
		want  string           // the error with this number, or ""
	}{
		"longer":  {"0", func(int) int { return 1301 }, ""},
		"shorter": {"0", func(int) int { return 100 }, "the function opens 100 tasks, but %d are already open"},
		"nothing": {"0", func(int) int { return 0 }, "the function opens 0 tasks, but %d are already open"},
		"changed": {"x", func(int) int { return 1301 }, "the first %d definitions differ from those of an earlier start"},
		"enough":  {"0", func(is int) int { return is }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, log := redisConfig(t, addr), &logged{}
			if err := start(t, cfg, log, "0", 1300); err == nil || err.Error() != "interrupted" {
				t.Fatal(err)
			}
			opened := lastID(t, cfg)
			expect.Compare(t, opened, ">=", 250)
			expect.Compare(t, opened, "<", 1300)
			n := c.n(opened)
			err := start(t, cfg, log, c.first, n)
			if c.want == "" {
				checkFirst(t, cfg, n)
			} else if log.Count(fmt.Sprintf(c.want, opened)) != 1 || lastID(t, cfg) != opened {
				t.Errorf("%d tasks, %s", lastID(t, cfg), log.String())
			}
			expect.Fails(t, err, "", "the pipeline ended")
		})
	}
}

func lastID(t *testing.T, cfg config.Manager) int {
	t.Helper()
	return expect.Result(testspace.Client(t, cfg).Get(t.Context(), cfg.Namespace+":task_id").Int()).Value(t)
}

// If a user retries a task of the stage while the function after the stage runs, the task runs first. Then the function runs
// again.
func TestRetryDuringAfter(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	m := tm.Manager
	p := m.Pipeline("p")
	p.Start("a", opens("1", "2"))
	calls := 0
	p.After("a", "b", func(ctx context.Context, b *manager.Stage) error {
		if calls++; calls == 1 {
			expect.Result(m.Retry(ctx, manager.Changes{Input: new("again")}, manager.ByIDs(1)...)).OK(t)
		}
		b.Open(define("p", source, inputs(tm, "p/a")))
		return nil
	})
	must(t, p.Run(t.Context()))
	expect.Equal(t, inputs(tm, "p/b"), "again 2", calls)
	expect.Equal(t, calls, 2)
	expect.Compare(t, log.Count("level=ERROR"), "<=", 0, calls)
	checkArchived(t, tm, 3)
}

// The tasks of a foreign group of the same name do not become tasks of the stage.
func TestGroupOfAnotherName(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	opened := expect.Result(tm.Manager.Open(t.Context(), ofGroup("p/a", "foreign"))).Value(t)
	p := tm.Manager.Pipeline("p")
	starts := 0
	p.Start("a", func(ctx context.Context, s *manager.Stage) error {
		if starts++; starts == 2 {
			expect.Result(tm.Manager.Cancel(ctx, opened[0].Ref())).OK(t)
			expect.Result(tm.Manager.Remove(ctx, opened[0].Ref())).OK(t)
		}
		return opens("1")(ctx, s)
	})
	must(t, p.Run(t.Context()))
	expect.Equal(t, inputs(tm, "p/a"), "1")
	expect.Equal(t, log.Count("the group already has tasks"), 1)
}

// After Forget, the name can be used again, once the groups have no tasks.
func TestForget(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	m := tm.Manager
	for n := range 2 {
		p := m.Pipeline("p")
		calls := 0
		p.Start("a", opens("1"))
		p.After("a", "", func(context.Context, *manager.Stage) error { calls++; return nil })
		must(t, p.Run(t.Context()))
		must(t, p.Forget(t.Context()))
		expect.Result(m.Remove(t.Context(), manager.ByIDs(int64(n+1))...)).OK(t)
		expect.Equal(t, calls, 1)
		expect.Len(t, tm.Tasks(), 0, calls)
	}
}

// Two managers that run the same pipeline open each task once.
func TestTwoManagersOfOnePipeline(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	tm.Program("p", func(r managertest.Run) managertest.Result { return managertest.Result{Output: r.Task.Input} })
	run := func(m *manager.Manager) error {
		p := m.Pipeline("p")
		p.Start("a", func(_ context.Context, s *manager.Stage) error {
			for i := range 260 {
				s.Open(define("p", source, strconv.Itoa(i)))
			}
			return nil
		})
		p.Each("a", ignore)
		p.After("a", "b", func(_ context.Context, b *manager.Stage) error {
			for i := range 260 {
				b.Open(define("p", source, strconv.Itoa(i)))
			}
			return nil
		})
		p.After("b", "c", opens("1"))
		p.After("c", "", nothing)
		return p.Run(t.Context())
	}
	var both sync.WaitGroup
	for _, m := range []*manager.Manager{tm.Manager, tm.Another()} {
		both.Go(func() {
			err := run(m)
			expect.True(t, err == nil, err)
		})
	}
	both.Wait()
	for _, stage := range []string{"p/a", "p/b"} {
		all := strings.Fields(inputs(tm, stage))
		expect.MustLen(t, all, 260, stage)
		expect.MustEqual(t, all[0], "0", stage)
		expect.Equal(t, all[259], "259", stage)
		expect.True(t, slices.IsSortedFunc(all, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y }), stage, len(all))
	}
	checkArchived(t, tm, 521)
	expect.True(t, log.Count("level=ERROR") == 0, log.String())
}
