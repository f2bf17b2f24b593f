package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

const source = "https://example.org/run.sh"

// logged is a buffer that contains the log of a manager.
type logged struct{ testlog.Buffer }

func (l *logged) option() func(*manager.Options) {
	return testspace.Log(l.logger())
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// newTester returns a tester with a program p. The program prints its arguments, or fails in the way that its first
// argument names.
func newTester(t *testing.T) (*managertest.Tester, *logged) {
	t.Helper()
	log := &logged{}
	tm := managertest.NewWith(t, manager.Options{Log: log.logger()})
	tm.Program("p", func(r managertest.Run) managertest.Result {
		switch r.Args[0] {
		case "fail":
			return managertest.Result{Error: "it broke\nbadly"}
		case "hang":
			return managertest.Result{Duration: managertest.Forever}
		case "lost":
			return managertest.Result{Lost: true}
		}
		return managertest.Result{Output: strings.Join(r.Args, " ")}
	})
	return tm, log
}

// open opens one task of p for each input.
func open(t testing.TB, m *manager.Manager, inputs ...string) []int64 {
	t.Helper()
	var defs []manager.Definition
	for _, input := range inputs {
		d := define("p", source, input)
		if strings.HasPrefix(input, "hang") {
			d.Timeout = 20 * time.Second
		}
		defs = append(defs, d)
	}
	return expect.Result(testspace.IDs(m.Open(t.Context(), defs...))).Value(t)
}

func run(t testing.TB, m *manager.Manager, c manager.Callbacks) {
	t.Helper()
	expect.NoError(t, m.Run(t.Context(), c))
}

func TestRunCallsTheCallbackOfEachState(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	var calls []string
	note := func(name string) func(context.Context, *manager.Finished) error {
		return func(_ context.Context, task *manager.Finished) error {
			calls = append(calls, fmt.Sprintf("%s %d %s %s", name, task.ID, task.State, task.Outcome))
			return nil
		}
	}
	ids := open(t, tm.Manager, "ok", "fail", "hang", "lost", "ok later")
	expect.Result(tm.Manager.Cancel(t.Context(), manager.ByIDs(ids[4])...)).OK(t)
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: note("succeeded"), Failed: note("failed"), TimedOut: note("timed out"), Expired: note("expired"),
	})
	slices.Sort(calls)
	want := []string{
		"expired 5 expired cancelled", "failed 2 failed failed", "failed 4 failed failed",
		"succeeded 1 succeeded succeeded", "timed out 3 timed_out timed_out",
	}
	expect.Equal(t, calls, want)
	expect.Equal(t, len(tm.In(tdf.Archived)), len(ids), "of … are archived")
}

func TestWithoutCallbacksTasksAreArchivedWithAWarning(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	open(t, tm.Manager, "ok", "fail")
	run(t, tm.Manager, manager.Callbacks{AllGroups: true})
	expect.Equal(t, len(tm.In(tdf.Archived)), 2, "of 2 are archived")
	expect.Equal(t, log.Count("archived without a callback"), 1)
	expect.Equal(t, log.Count(`error="it broke"`), 1)
}

func TestAFailingCallbackHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("no disk left") },
		"panic": func() error { panic("no disk left") },
	} {
		t.Run(name, func(t *testing.T) {
			tm, log := newTester(t)
			ids := open(t, tm.Manager, "bad", "good", "good")
			var at []time.Duration
			begin := tm.Now()
			run(t, tm.Manager, manager.Callbacks{
				AllGroups: true,
				Succeeded: func(_ context.Context, task *manager.Finished) error {
					if task.ID != ids[0] {
						return nil
					}
					task.Open(define("p", source, "follow-up"))
					if at = append(at, tm.Now().Sub(begin).Round(time.Millisecond)); len(at) < 6 {
						return fail()
					}
					return nil
				},
				EndOfRound: func(_ context.Context, s manager.Summary) error {
					if s.Round == 2 {
						expect.Equal(t, s.Counts[tdf.Archived], 2)
						expect.Equal(t, s.Waiting, 1)
					}
					return nil
				},
			})
			want := []time.Duration{0, 1e9, 3e9, 7e9, 15e9, 31e9}
			expect.True(t, slices.Equal(at, want), "the callback was called after", at, "want", want)
			expect.Equal(t, log.Count("callback failed; it is called again"), 5)
			expect.Equal(t, log.Count("no disk left"), 5)
			expect.Equal(t, len(tm.In(tdf.Archived)), 4, "tasks are archived")
		})
	}
}

func TestPausesEndAtFiveMinutes(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	open(t, tm.Manager, "bad")
	var pause time.Duration
	last := tm.Now()
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(context.Context, *manager.Finished) error {
			pause, last = tm.Now().Sub(last).Round(time.Millisecond), tm.Now()
			return errors.New("never")
		},
		Stop: func(_ context.Context, s manager.Summary) bool { return pause == 5*time.Minute },
	})
	expect.Equal(t, len(tm.In(tdf.Succeeded)), 1, "tasks are still in the state succeeded")
}

func TestNotYet(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	ids := open(t, tm.Manager, "waits", "hang", "other")
	finished := map[int64]bool{}
	finish := func(_ context.Context, task *manager.Finished) error {
		finished[task.ID] = true
		return nil
	}
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(ctx context.Context, task *manager.Finished) error {
			if task.ID == ids[0] && len(finished) < 2 {
				return fmt.Errorf("two others: %w", manager.ErrNotYet)
			}
			return finish(ctx, task)
		},
		TimedOut: finish,
	})
	expect.Len(t, finished, 3)
	expect.Equal(t, log.Count("callback failed"), 0)
	took := tm.Now().Sub(tm.Tasks()[1].Rounds[0].TimedOut)
	expect.True(t, took <= 10*time.Microsecond, "the waiting task was archived", took, "after the last task that it waits for, want at once")
}

// A task may wait for another task that has failed. The log says so once, with the error of the callback.
func TestNotYetForEver(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	waiting := open(t, tm.Manager, "waits", "fail", "hang")[0]
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, task *manager.Finished) error {
			return fmt.Errorf("the others: %w", manager.ErrNotYet)
		},
		Stop: func(_ context.Context, s manager.Summary) bool {
			if s.Counts.Unfinished() > 0 {
				expect.Equal(t, log.Count("ErrNotYet"), 0, "the log says it too early")
			}
			return s.Round == 20
		},
	})
	expect.Equal(t, log.Count("ErrNotYet"), 1, log.String())
	expect.Equal(t, log.Count(fmt.Sprintf("tasks=1 task=%d error=\"the others: not yet\"", waiting)), 1, log.String())
}

// A callback whose step is impossible is called again. TestImpossibleTransactions has the reasons.
func TestFollowUpsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	open(t, tm.Manager, "ok")
	calls := 0
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, task *manager.Finished) error {
			if calls++; calls == 1 {
				task.Open(define("p", source, "fine"), define("", source, ""))
			}
			return nil
		},
	})
	expect.Equal(t, calls, 2)
	expect.Len(t, tm.Tasks(), 1, calls)
	expect.Equal(t, log.Count("task 2 of 2: program: is empty"), 1, calls)
}

// Tasks that must wait do not hide later tasks, even if they fill a page of ids or reach the limit of a round. While all tasks
// wait, Run starts only one round per RoundDuration, even if more tasks wait than one round can handle. A round archives a
// limited number of tasks.
func TestPagingGoesPastHeldTasks(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	const many = 1101
	open(t, tm.Manager, slices.Repeat([]string{"x"}, many)...)
	for i, c := range []struct {
		hold   error
		free   int64 // the last task, because Redis sorts these tasks by their ids as strings
		rounds int
	}{{errors.New("no"), 999, 1}, {manager.ErrNotYet, 998, 6}} {
		var begun []time.Time
		run(t, tm.Manager, manager.Callbacks{
			AllGroups: true,
			Succeeded: func(_ context.Context, task *manager.Finished) error {
				if task.ID != c.free {
					return c.hold
				}
				return nil
			},
			EndOfRound: func(context.Context, manager.Summary) error {
				begun = append(begun, tm.Now())
				return nil
			},
			Stop: func(_ context.Context, s manager.Summary) bool {
				return s.Counts[tdf.Archived] == int64(i+1) && s.Round >= c.rounds || s.Round == 10
			},
		})
		page := expect.Result(tm.Manager.Page(t.Context(), manager.Query{States: []tdf.State{tdf.Archived}}, "", 10)).Value(t)
		expect.Len(t, page.Tasks, i+1, c.free)
		expect.True(t, slices.ContainsFunc(page.Tasks, func(task *manager.Task) bool { return task.ID == c.free }), c.hold, "archived", page.Tasks, "want task", c.free)
		n := len(begun)
		if n > 5 {
			expect.Compare(t, begun[n-1].Sub(begun[n-2]), ">=", time.Second)
		}
	}
	var archived []int
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		EndOfRound: func(_ context.Context, s manager.Summary) error {
			archived = append(archived, s.Archived)
			return nil
		},
	})
	expect.MustTrue(t, len(archived) >= 2, archived)
	expect.Equal(t, archived[:2], []int{1024, many - 2 - 1024}, "tasks were archived in the rounds")
}

// The pause after a failed callback begins when the callback fails, not when the round begins.
func TestPausesBeginWithTheFailure(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	open(t, tm.Manager, "bad")
	var failed, again []time.Time
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(ctx context.Context, task *manager.Finished) error {
			again = append(again, tm.Now())
			if len(again) == 3 {
				return nil
			}
			passTime(t, tm, time.Minute)
			failed = append(failed, tm.Now())
			return errors.New("no")
		},
	})
	for i, want := range []time.Duration{time.Second, 2 * time.Second} {
		expect.Equal(t, again[i+1].Sub(failed[i]).Round(time.Millisecond), want, "call", i+2, "was made … after the failure")
	}
}

// passTime advances the test's clock by the duration d: another manager runs a task that takes this time.
func passTime(t *testing.T, tm *managertest.Tester, d time.Duration) {
	t.Helper()
	tm.Program("slow", func(managertest.Run) managertest.Result { return managertest.Result{Duration: d} })
	other, slow := tm.Another(), define("slow", source, "x")
	slow.Group = "slow"
	expect.Result(other.Open(t.Context(), slow)).OK(t)
	run(t, other, manager.Callbacks{Groups: []string{"slow"}})
}

func TestGroups(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	for _, group := range []string{"a", "b", ""} {
		d := define("p", source, "x")
		d.Group = group
		expect.Result(tm.Manager.Open(t.Context(), d)).OK(t)
	}
	run(t, tm.Manager, manager.Callbacks{Groups: []string{"b", "b", "unused"}})
	archived := tm.In(tdf.Archived)
	expect.MustLen(t, archived, 1)
	expect.Equal(t, archived[0].Group, "b")
	expect.Fails(t, tm.Manager.Run(t.Context(), manager.Callbacks{Groups: []string{""}}), "", "Run accepted a group named")
}

func TestEndOfRoundEndsRun(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	open(t, tm.Manager, "ok")
	enough := errors.New("enough")
	stopped := false
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		AllGroups:  true,
		EndOfRound: func(context.Context, manager.Summary) error { return enough },
		Stop:       func(context.Context, manager.Summary) bool { stopped = true; return true },
	})
	expect.FailsWith(t, err, enough)
	expect.True(t, !stopped, err, "stopped", stopped)
}

// If ctx ends during a callback, Run archives the tasks whose callbacks had already returned. The interrupted callback
// may return ctx.Err() or context.Cause(ctx).
func TestTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]func(context.Context) error{"cause": context.Cause, "error": context.Context.Err} {
		t.Run(name, func(t *testing.T) { endsContext(t, ended) })
	}
}

func endsContext(t *testing.T, ended func(context.Context) error) {
	tm, log := newTester(t)
	open(t, tm.Manager, "one", "two", "three")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the test stops Run")
	calls := 0
	err := tm.Manager.Run(ctx, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(ctx context.Context, task *manager.Finished) error {
			if calls++; calls == 2 {
				cancel(why)
				return ended(ctx)
			}
			task.Open(define("p", source, "follow-up"))
			return nil
		},
	})
	expect.FailsWith(t, err, why, calls, "calls")
	expect.Equal(t, calls, 2)
	n, all := len(tm.In(tdf.Archived)), len(tm.Tasks())
	expect.Equal(t, n, 1, all, "tasks are archived, want 1 of 4")
	expect.Equal(t, all, 4, n)
	expect.Equal(t, log.Count("callback failed"), 0, "the end of ctx was logged as a failure", log.String())
}

// If another client retries a task while the task's callback runs, the follow-ups of the callback are not opened.
func TestATaskThatIsElsewhereMeanwhile(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	ids := open(t, tm.Manager, "ok")
	calls := 0
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(ctx context.Context, task *manager.Finished) error {
			if calls++; calls > 1 {
				return nil
			}
			task.Open(define("p", source, "follow-up"))
			_, err := tm.Another().Retry(ctx, manager.Changes{}, manager.ByIDs(ids...)...)
			return err
		},
	})
	expect.Len(t, tm.Tasks(), 1, calls)
	expect.Equal(t, calls, 2)
	expect.Equal(t, log.Count("task not archived, and no follow-up opened"), 1, calls)
}

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	open(t, tm.Manager, "ok")
	run(t, tm.Manager, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(ctx context.Context, _ *manager.Finished) error {
			expect.Fails(t, tm.Manager.Run(ctx, manager.Callbacks{AllGroups: true}), "", "a Run within a Run returned no error")
			return nil
		},
	})
	run(t, tm.Manager, manager.Callbacks{AllGroups: true})
}
