package manager_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

// manyIn returns n definitions of a group.
func manyIn(group string, n int) []manager.Definition {
	d := define("p", source, group)
	d.Group = group
	return slices.Repeat([]manager.Definition{d}, n)
}

func TestInvalidCallbacks(t *testing.T) {
	t.Parallel()
	m := managertest.New(t).Manager
	for want, c := range map[string]manager.Callbacks{
		"InOrder needs Groups":  {AllGroups: true, InOrder: true},
		"Concurrency is -1":     {AllGroups: true, Concurrency: -1},
		"Concurrency is 100000": {AllGroups: true, Concurrency: 100_000},
		"Attempts is -2":        {AllGroups: true, Attempts: -2},
		`a group is ""`:         {Groups: []string{""}},
	} {
		err := m.Run(t.Context(), c)
		expect.Fails(t, err, want)
		expect.Equal(t, tdf.CodeOf(err), tdf.CodeInvalid, want)
	}
}

// As many callbacks of each group run at once as Concurrency says, and no more.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	expect.Result(tm.Manager.Open(t.Context(), append(manyIn("a", 40), manyIn("b", 40)...)...)).OK(t)
	together := make(chan struct{})
	var running, most atomic.Int64
	run(t, tm.Manager, manager.Callbacks{
		Groups: []string{"a", "b"}, Concurrency: 4,
		Succeeded: func(context.Context, *manager.Finished) error {
			defer running.Add(-1)
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			if running.Load() == 4 {
				select {
				case <-together:
				default:
					close(together)
				}
			}
			<-together
			return nil
		},
	})
	expect.Compare(t, most.Load(), ">=", 4)
	expect.Compare(t, most.Load(), "<=", 8)
	expect.Equal(t, len(tm.In(tdf.Archived)), 80)
}

// A callback that does not return delays neither those of its group nor those of other groups.
func TestSlowCallback(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	startServerAndWorker(t, cfg)
	m := newManager(t, cfg, testspace.Log(silent))
	expect.Result(m.Open(t.Context(), append(manyIn("slow", 100), manyIn("fast", 100)...)...)).OK(t)
	release, slow := make(chan struct{}), sync.OnceValue(func() bool { return true })
	var first, calls atomic.Int64
	run(t, m, manager.Callbacks{
		Groups: []string{"slow", "fast"}, Concurrency: 2,
		Succeeded: func(_ context.Context, f *manager.Finished) error {
			calls.Add(1)
			if f.Group == "slow" && slow() && first.CompareAndSwap(0, f.ID) {
				<-release
			}
			return nil
		},
		EndOfRound: func(_ context.Context, s manager.Summary) error {
			if s.Counts[tdf.Archived] == 199 {
				expect.Equal(t, s.Running, 1)
				close(release)
			}
			return nil
		},
	})
	expect.Equal(t, calls.Load(), 200, "each callback runs once")
}

// A task is archived although the callback of the next task has not returned.
func TestArchivedWhileTheNextCallbackRuns(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	startServerAndWorker(t, cfg)
	m, other := newManager(t, cfg, testspace.Log(silent)), newManager(t, cfg, testspace.Log(silent))
	expect.Result(m.Open(t.Context(), manyIn("g", 2)...)).OK(t)
	var first int64
	run(t, m, manager.Callbacks{
		Groups: []string{"g"},
		Succeeded: func(_ context.Context, f *manager.Finished) error {
			if first == 0 {
				first = f.ID
				return nil
			}
			eventually(t, "the first task is archived", func() bool {
				return expect.Result(other.Counts(t.Context())).Value(t)[tdf.Archived] == 1
			})
			return nil
		},
	})
}

// The callbacks of a group run in the order in which its tasks were opened, whatever finishes first.
func TestInOrder(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{0, 3} {
		tm := managertest.New(t)
		tm.Program("p", func(r managertest.Run) managertest.Result {
			if r.Task.ID%3 == 0 {
				return managertest.Result{Error: "no"}
			}
			return managertest.Result{Duration: time.Duration(150-r.Task.ID) * time.Second}
		})
		var groups []string
		for _, g := range []string{"a", "b"} {
			groups = append(groups, g)
			expect.Result(tm.Manager.Open(t.Context(), manyIn(g, 70)...)).OK(t)
		}
		var lock sync.Mutex
		seen, failures := map[string][]int64{}, 0
		record := func(_ context.Context, f *manager.Finished) error {
			lock.Lock()
			defer lock.Unlock()
			switch {
			case f.ID == 10 && failures < 3:
				failures++
				return errors.New("not now")
			case f.ID == 20:
				return errors.New("never")
			}
			seen[f.Group] = append(seen[f.Group], f.ID)
			return nil
		}
		err := tm.Manager.Run(t.Context(), manager.Callbacks{
			Groups: groups, InOrder: true, Concurrency: concurrency, Attempts: 4, Succeeded: record, Failed: record,
		})
		expect.True(t, errors.Is(err, manager.ErrGivenUp), err)
		expect.Len(t, seen["a"], 69)
		expect.Len(t, seen["b"], 70)
		expect.True(t, slices.IsSorted(seen["a"]), concurrency, seen["a"])
		expect.True(t, slices.IsSorted(seen["b"]), concurrency, seen["b"])
	}
}

// A callback that always fails ends, also if the manager is restarted between its attempts. A user can run it again.
func TestCallbackGivenUp(t *testing.T) {
	t.Parallel()
	onBoth(t, "", func(t *testing.T, m *manager.Manager, another func() *manager.Manager, log *logged) {
		attempts := 0 // the default
		if strings.HasSuffix(t.Name(), "redis") {
			attempts = 2 // the pauses take real time
		}
		want := cmp.Or(attempts, 20)
		ids := open(t, m, "poison", "fine")
		var calls int
		fails := true
		c := manager.Callbacks{
			AllGroups: true, Attempts: attempts,
			Succeeded: func(_ context.Context, f *manager.Finished) error {
				if f.ID == ids[0] && fails {
					calls++
					panic(fmt.Sprint("attempt ", calls))
				}
				return nil
			},
		}
		until := c
		until.Stop = func(context.Context, manager.Summary) bool { return calls == want/2 }
		run(t, m, until)
		for range 2 {
			err := another().Run(t.Context(), c)
			expect.True(t, errors.Is(err, manager.ErrGivenUp), err)
			expect.Equal(t, calls, want)
		}
		expect.Equal(t, log.Count("callback failed for good"), 1)
		failed := expect.Result(m.FailedCallbacks(t.Context(), 10)).Value(t)
		expect.MustLen(t, failed, 1)
		expect.Equal(t, failed[0].Task, ids[0])
		expect.Equal(t, failed[0].Attempts, want)
		expect.True(t, strings.HasPrefix(failed[0].Error, fmt.Sprintf("callback panicked: attempt %d\n", want)), failed[0].Error)
		expect.Contains(t, failed[0].Error, "calls_test.go")

		fails = false
		expect.NoError(t, m.RetryCallbacks(t.Context(), ids[0]))
		run(t, m, c)
		expect.Equal(t, expect.Result(m.Counts(t.Context())).Value(t)[tdf.Archived], int64(2))
		expect.Len(t, expect.Result(m.FailedCallbacks(t.Context(), 10)).Value(t), 0)
	})
}

// While a manager runs, a user lets it call a callback again that had failed for good.
func TestRetryACallbackOfARunningManager(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	id := open(t, tm.Manager, "poison")[0]
	calls := 0
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true, Attempts: 2,
		Succeeded: func(context.Context, *manager.Finished) error {
			if calls++; calls < 5 {
				return errors.New("no")
			}
			return nil
		},
		EndOfRound: func(ctx context.Context, s manager.Summary) error {
			if s.GivenUp == 0 {
				return nil
			}
			return tm.Manager.RetryCallbacks(ctx, id)
		},
		Stop: func(_ context.Context, s manager.Summary) bool { return s.Done() },
	})
	expect.Equal(t, calls, 5)
}

// A pipeline whose callback fails for good ends with an error.
func TestPipelineOfAPoisonCallback(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	p := tm.Manager.Pipeline("line")
	p.Start("a", func(_ context.Context, s *manager.Stage) error {
		s.Open(define("p", source, "x"), define("p", source, "y"))
		return nil
	})
	p.Each("a", func(_ context.Context, f *manager.Finished) error {
		if f.Input == "x" {
			return errors.New("no room")
		}
		return nil
	})
	err := p.Run(t.Context())
	expect.True(t, errors.Is(err, manager.ErrGivenUp), err)
	expect.Fails(t, err, "no room")
}

func TestWrappedCallbacks(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	open(t, tm.Manager, "ok", "fail")
	var said []string
	wrap := func(name string) func(manager.Callback) manager.Callback {
		return func(next manager.Callback) manager.Callback {
			return func(ctx context.Context, f *manager.Finished) error {
				said = append(said, name)
				return next(ctx, f)
			}
		}
	}
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true, Use: []func(manager.Callback) manager.Callback{wrap("outer"), wrap("inner")},
		Succeeded: func(context.Context, *manager.Finished) error { said = append(said, "callback"); return nil },
	})
	expect.Equal(t, said, []string{"outer", "inner", "callback"}, "a nil callback is not wrapped")
}

// runtime.Goexit in a callback, which t.FailNow calls, ends the goroutine that called Run.
func TestGoexitInACallback(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	open(t, tm.Manager, "ok", "ok")
	ended := make(chan bool)
	go func() {
		returned := false
		defer func() { ended <- returned }()
		_ = tm.Manager.Run(t.Context(), manager.Callbacks{
			AllGroups: true, Succeeded: func(context.Context, *manager.Finished) error { runtime.Goexit(); return nil },
		})
		returned = true
	}()
	expect.Equal(t, <-ended, false, "Run returned")
}
