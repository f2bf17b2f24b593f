package manager_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
)

func TestRunNeedsGroups(t *testing.T) {
	t.Parallel()
	m := managertest.New(t).Manager
	expect.Fails(t, m.Run(t.Context(), manager.Callbacks{}), "name the groups whose tasks this manager handles")
	expect.Fails(t, m.Run(t.Context(), manager.Callbacks{AllGroups: true, Groups: []string{"g"}}), "set one of them")
}

// A manager of all groups leaves the tasks of a pipeline, and those that another manager names, to them.
func TestRunLeavesTasksToOthers(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		onBoth(t, fmt.Sprint("force ", force), func(t *testing.T, m *manager.Manager, another func() *manager.Manager, _ *logged) {
			called := callsByGroup{}
			p := m.Pipeline("line")
			p.Start("a", func(_ context.Context, s *manager.Stage) error {
				for i := range 20 {
					s.Open(define("p", source, strconv.Itoa(i)))
				}
				return nil
			})
			p.Each("a", called.count("pipeline"))
			owner, all := another(), another()
			for _, group := range []string{"", "own", "others"} {
				d := define("p", source, "")
				d.Group = group
				expect.Result(owner.Open(t.Context(), d, d, d)).OK(t)
			}
			begun := make(chan struct{})
			var runs sync.WaitGroup
			runs.Go(func() {
				once := sync.OnceFunc(func() { close(begun) })
				expect.NoError(t, owner.Run(t.Context(), manager.Callbacks{
					Groups: []string{"own"}, Succeeded: called.count("owner"),
					EndOfRound: func(context.Context, manager.Summary) error { once(); return nil },
					Stop:       func(_ context.Context, s manager.Summary) bool { return called.total("own") >= 3 },
				}))
			})
			<-begun
			runs.Go(func() { expect.NoError(t, p.Run(t.Context())) })
			expect.NoError(t, all.Run(t.Context(), manager.Callbacks{
				AllGroups: true, Force: force, Succeeded: called.count("all"),
				Stop: func(_ context.Context, s manager.Summary) bool { return s.Counts[tdf.Archived] == 29 },
			}))
			runs.Wait()
			expect.Equal(t, called.of("all", ""), 3)
			expect.Equal(t, called.of("all", "others"), 3)
			if !force {
				expect.Equal(t, called.of("owner", "own"), 3)
				expect.Equal(t, called.of("pipeline", "line/a"), 20)
			}
		})
	}
}

// callsByGroup counts callbacks by the one who made them and the group of the task.
type callsByGroup map[[2]string]int

var callsLock sync.Mutex

func (c callsByGroup) count(who string) func(context.Context, *manager.Finished) error {
	return func(_ context.Context, f *manager.Finished) error {
		callsLock.Lock()
		defer callsLock.Unlock()
		c[[2]string{who, f.Group}]++
		return nil
	}
}

func (c callsByGroup) of(who, group string) int {
	callsLock.Lock()
	defer callsLock.Unlock()
	return c[[2]string{who, group}]
}

func (c callsByGroup) total(group string) int {
	return c.of("owner", group) + c.of("all", group) + c.of("pipeline", group)
}

// Managers whose groups overlap are told so, each of them once.
func TestOverlappingGroups(t *testing.T) {
	t.Parallel()
	onBoth(t, "", func(t *testing.T, m *manager.Manager, another func() *manager.Manager, log *logged) {
		d := define("p", source, "")
		d.Group = "g"
		expect.Result(m.Open(t.Context(), d)).OK(t)
		called, warned := make(chan struct{}), make(chan struct{})
		var other sync.WaitGroup
		second := another()
		other.Go(func() {
			once := sync.OnceFunc(func() { close(called) })
			expect.NoError(t, second.Run(t.Context(), manager.Callbacks{
				Groups: []string{"f", "g"},
				Succeeded: func(context.Context, *manager.Finished) error {
					once()
					<-warned
					return nil
				},
			}))
		})
		<-called
		once := sync.OnceFunc(func() { close(warned) })
		run(t, m, manager.Callbacks{
			Groups: []string{"g", "h"}, EndOfRound: func(context.Context, manager.Summary) error { once(); return nil },
		})
		other.Wait()
		expect.Equal(t, log.Count("another manager handles tasks of the same groups"), 1, log.String())
		expect.Contains(t, log.String(), "groups=g")
	})
}

// Two managers of the same groups share the tasks, and no task gets two callbacks.
func TestManagersShareTasks(t *testing.T) {
	t.Parallel()
	onBoth(t, "", func(t *testing.T, m *manager.Manager, another func() *manager.Manager, _ *logged) {
		expect.Result(m.OpenGroup(t.Context(), inGroup(200, "g")...)).OK(t)
		var calls atomic.Int64
		var runs sync.WaitGroup
		for _, each := range []*manager.Manager{m, another()} {
			runs.Go(func() {
				expect.NoError(t, each.Run(t.Context(), manager.Callbacks{
					Groups: []string{"g"}, Concurrency: 8,
					Succeeded: func(context.Context, *manager.Finished) error {
						calls.Add(1)
						return nil
					},
				}))
			})
		}
		runs.Wait()
		expect.Equal(t, calls.Load(), 200)
	})
}

// A task that another manager has leased stays. When the lease ends, because the manager was killed or its Run ended,
// the task gets its callback. The records of a manager count for 30 s.
func TestLeaseOfAnotherManager(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	startServerAndWorker(t, cfg)
	m, s := newManager(t, cfg), connect(t, cfg)
	tasks := expect.Result(m.OpenGroup(t.Context(), inGroup(3, "g")...)).Value(t)
	expect.Result(s.Callbacks.Lease(t.Context(), "killed", 3600, []int64{tasks[0].ID}, nil)).OK(t)
	expect.NoError(t, s.Callbacks.SayHandling(t.Context(), callbacks.Handling{ID: "killed", Groups: []string{"g"}, Until: 1}))
	expect.Result(s.Callbacks.Lease(t.Context(), "alive", 3600, []int64{tasks[1].ID}, nil)).OK(t)
	var calls []int64
	run(t, m, manager.Callbacks{
		Groups: []string{"g"},
		Succeeded: func(_ context.Context, f *manager.Finished) error {
			calls = append(calls, f.ID)
			return nil
		},
		EndOfRound: func(ctx context.Context, sum manager.Summary) error {
			if sum.Counts[tdf.Archived] < 2 || sum.Counts[tdf.Succeeded] == 0 {
				return nil
			}
			expect.True(t, !slices.Contains(calls, tasks[1].ID), "the callback of a leased task was called")
			now := expect.Result(s.Now(ctx)).Value(t)
			own := expect.Result(s.Callbacks.Handlings(ctx, now)).Value(t)
			expect.MustLen(t, own, 1)
			expect.Compare(t, own[0].Until.Sub(now), "<=", 30)
			return s.Callbacks.EndHandlings(ctx, "alive")
		},
	})
	expect.Len(t, calls, 3)
	expect.Equal(t, s.Conn.Redis.HLen(t.Context(), s.Keys.CallbackLeases()).Val(), 0, "leases that remain")
	expect.Len(t, s.Conn.Redis.Keys(t.Context(), s.Keys.LeasedBy("*")).Val(), 0, "tasks that remain leased")
}

// A manager that stood still renews its leases, but not those that another one has taken meanwhile. Otherwise, both would leave
// these tasks to the other one.
func TestLeasesThatAnotherManagerHasTaken(t *testing.T) {
	t.Parallel()
	s := connect(t, redisConfig(t, redistest.Shared(t)))
	renew := func(run string, until task.Time) {
		expect.NoError(t, s.Callbacks.SayHandling(t.Context(), callbacks.Handling{ID: run, Groups: []string{"g"}, Until: until}))
	}
	lease := func(run string, ids ...int64) []int64 {
		var got []int64
		for _, f := range expect.Result(s.Callbacks.Lease(t.Context(), run, 3600, ids, nil)).Value(t) {
			got = append(got, f.Task)
		}
		return got
	}
	expect.Equal(t, lease("still", 1, 2, 3), []int64{1, 2, 3})
	renew("still", 1)
	expect.Equal(t, lease("other", 2, 3, 4), []int64{2, 3, 4})
	renew("still", expect.Result(s.Now(t.Context())).Value(t).Add(3600))
	expect.Equal(t, lease("still", 1, 2, 3, 4, 5), []int64{1, 5})
	expect.Equal(t, lease("other", 1, 2, 3, 4, 5), []int64{2, 3, 4})
}

// onBoth runs a test with managertest, and with a server and a worker on a Redis. The program p succeeds.
func onBoth(t *testing.T, name string,
	test func(t *testing.T, m *manager.Manager, another func() *manager.Manager, log *logged),
) {
	t.Run(name+" managertest", func(t *testing.T) {
		log := &logged{}
		tm := managertest.NewWith(t, manager.Options{Log: log.logger()})
		tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{} })
		test(t, tm.Manager, tm.Another, log)
	})
	t.Run(name+" redis", func(t *testing.T) {
		cfg := redisConfig(t, redistest.Shared(t))
		startServerAndWorker(t, cfg)
		log := &logged{}
		another := func() *manager.Manager { return newManager(t, cfg, log.option()) }
		test(t, another(), another, log)
	})
}
