package worker

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// A gathering store records the largest number of results in one call.
type gathering struct {
	broker.DirectStore
	largest atomic.Int64
}

func (s *gathering) Turn(
	ctx, claiming context.Context, r redisstate.ClaimParams, results ...rules.Move,
) ([]redisstate.Outcome, redisstate.ClaimResult, error, error) {
	for n := s.largest.Load(); int64(len(results)) > n && !s.largest.CompareAndSwap(n, int64(len(results))); {
		n = s.largest.Load()
	}
	return s.DirectStore.Turn(ctx, claiming, r, results...)
}

// openMany opens n tasks, whose inputs are their indexes.
func (w *world) openMany(n int) (ids []int64) {
	w.Helper()
	definitions := make([]task.Properties, n)
	for i := range definitions {
		definitions[i] = task.Defaults("p", handMade, fmt.Sprint(i))
	}
	return expect.Result(w.store.Open(w.Context(), "test", definitions...)).Value(w)
}

// prefetching opens a supervisor whose runs count as short, however slow the machine is.
func (w *world) prefetching(worker *Worker) (s *supervisor, end func()) {
	w.Helper()
	s, end = w.supervisor(worker)
	s.mu.Lock()
	s.stock.short, s.stock.most = 24*time.Hour, 1000*time.Hour
	s.mu.Unlock()
	return s, end
}

// claiming opens such a supervisor that claims tasks, and whose timers the test holds. stop ends it.
func (w *world) claiming(worker *Worker) (s *supervisor, stop func()) {
	w.Helper()
	w.timers.hold()
	s, end := w.prefetching(worker)
	s.claimsByItself()
	return s, func() {
		s.endClaims(errStopping)
		<-s.noClaims
		end()
	}
}

// claimsByItself lets the worker claim tasks.
func (s *supervisor) claimsByItself() {
	s.once.Store(false)
	s.freed.give()
}

// The results of short runs travel together. Each task runs once.
func TestShortRunsShareCalls(t *testing.T) {
	const n = 600
	w := newWorld(t)
	w.cfg.Concurrency = 2
	ids := w.openMany(n)
	store := &gathering{DirectStore: w.ofStore()}
	var ran [n]atomic.Int64
	worker := w.workerOn(store, WithRunner(goRunner(func(_ context.Context, r *Round) (Ended, error) {
		var i int
		fmt.Sscan(r.Input, &i)
		ran[i].Add(1)
		fmt.Fprint(r.Stdout, "output ", r.Input)
		return Ended{}, nil
	})))
	_, stop := w.claiming(worker)
	eventually(t, "all tasks are executed", func() bool {
		return expect.Result(w.store.Counts(t.Context())).Value(t)[tdf.Succeeded] == n
	})
	stop()
	for i, id := range ids {
		got := w.task(id)
		expect.MustEqual(t, ran[i].Load(), int64(1), "runs of task", id)
		expect.MustEqual(t, got.LastOutput(), fmt.Sprint("output ", i))
		expect.MustEqual(t, got.Releases+got.Losses+got.Round, 0)
	}
	expect.Compare(t, store.largest.Load(), ">=", int64(20))
}

// A worker reports that the program of a prefetched task runs, so that its loss counts.
func TestPrefetchedTaskThatRuns(t *testing.T) {
	w := newWorld(t)
	w.openMany(10)
	runs, end := make(chan struct{}), make(chan struct{})
	s, stop := w.prefetching(w.running(func(context.Context, *Round) (Ended, error) {
		close(runs)
		<-end
		return Ended{}, nil
	}))
	a := call{received: time.Now()}
	a.tasks = expect.Result(s.broker.Exchange(t.Context(), t.Context(), &redisstate.ClaimParams{Prefetch: 1})).Value(t)
	expect.MustLen(t, a.tasks.Claims, 1)
	s.start(a)
	s.freed.give()
	<-runs
	id := a.tasks.Claims[0].Task.ID
	expect.True(t, w.task(id).Current().Prefetched)
	expect.Result(s.reportRounds(t.Context(), s.executions(), false)).OK(t)
	expect.True(t, !w.task(id).Current().Prefetched)
	close(end)
	eventually(t, "it is executed", func() bool { return w.task(id).State == tdf.Succeeded })
	s.endClaims(errStopping)
	stop()
}

// A worker gives back what it has prefetched when it drains or stops, when it cannot start a round, and when a run takes longer
// than expected. Nothing is counted.
func TestPrefetchedTasksAreGivenBack(t *testing.T) {
	for name, cause := range map[string]func(s *supervisor){
		"a long run": func(s *supervisor) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for slot := range s.stock.began {
				s.stock.began[slot] = time.Now().Add(-2 * s.stock.most)
			}
		},
		"draining":                          func(s *supervisor) { s.drain.obey("ann", s.log) },
		"stopping":                          func(s *supervisor) { s.endClaims(errStopping) },
		"a round that could not be started": func(s *supervisor) { s.unstarted.couldNotStart("other") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Grace = time.Hour
			const n, long = 200, 100
			ids := w.openMany(n)
			running, release := make(chan struct{}), make(chan struct{})
			worker := w.worker(WithRunner(goRunner(func(_ context.Context, r *Round) (Ended, error) {
				if r.Input == fmt.Sprint(long) {
					close(running)
					<-release
				}
				return Ended{}, nil
			})))
			s, stop := w.claiming(worker)
			<-running
			eventually(t, "prefetched tasks", func() bool { return len(s.tasks) > 0 })
			cause(s)
			var counts tdf.Counts
			expect.Eventually(t, "only the long task runs", func() bool {
				w.timers.expire(reportedAfter)
				counts = expect.Result(w.store.Counts(t.Context())).Value(t)
				return counts[tdf.Running] == 1 && len(s.tasks) == 0
			}, func() any { return counts })
			expect.Equal(t, counts[tdf.Open]+counts[tdf.Succeeded], int64(n-1))
			for _, id := range ids {
				got := w.task(id)
				expect.MustEqual(t, got.Releases+got.Losses+got.Round, 0)
			}
			close(release)
			stop()
			expect.Equal(t, w.task(ids[long]).State, tdf.Succeeded, "the long task")
			expect.Len(t, expect.Result(audit.Of(w.store).Check(t.Context())).Value(t), 0)
		})
	}
}

// A worker that was suspended has lost its prefetched tasks. None of them has failed, so its slot does not pause after each.
func TestLostPrefetchedTasks(t *testing.T) {
	w := newWorld(t)
	w.cfg.Grace, w.cfg.SleepAfterFailure = time.Hour, time.Hour
	const n, long = 200, 100
	w.openMany(n)
	running, release := make(chan struct{}), make(chan struct{})
	var begun atomic.Bool
	worker := w.worker(WithRunner(goRunner(func(_ context.Context, r *Round) (Ended, error) {
		if r.Input == fmt.Sprint(long) && begun.CompareAndSwap(false, true) {
			close(running)
			<-release
		}
		return Ended{}, nil
	})))
	s, stop := w.claiming(worker)
	<-running
	eventually(t, "prefetched tasks", func() bool { return len(s.tasks) > 1 })
	requeued := map[int64]bool{}
	w.timers.beat(t, "the loss", func() bool {
		held := s.executions()
		waiting := slices.DeleteFunc(held, func(e *execution) bool { return e.slot > 0 || e.ctx.Err() != nil })
		for _, e := range waiting { // for the slot
			if !requeued[e.task.ID] {
				w.requeue(e.task.ID)
			}
			requeued[e.task.ID] = true
		}
		return len(waiting) == 0
	})
	close(release)
	eventually(t, "all tasks are executed", func() bool {
		return expect.Result(w.store.Counts(t.Context())).Value(t)[tdf.Succeeded] == n
	})
	stop()
}

// A task that expires while it waits in its worker does not run.
func TestOverduePrefetchedTask(t *testing.T) {
	w := newWorld(t)
	id := w.open("", func(p *task.Properties) { p.EndBefore = 9e9 })
	worker := w.running(func(context.Context, *Round) (Ended, error) {
		t.Error("it runs")
		return Ended{}, nil
	})
	s, end := w.prefetching(worker)
	w.openMany(10)
	ctx := t.Context()
	a := call{received: time.Now()}
	a.tasks = expect.Result(s.broker.Exchange(ctx, ctx, &redisstate.ClaimParams{Prefetch: 1})).Value(t)
	expect.MustLen(t, a.tasks.Claims, 1)
	a.tasks.Claims[0].Task.EndBefore = a.tasks.Now
	s.start(a)
	s.freed.give()
	eventually(t, "it is open again", func() bool { return w.task(id).State == tdf.Open })
	s.endClaims(errStopping)
	end()
	expect.Equal(t, w.task(id).Releases, 0)
}

// The size of a stock depends on the last rounds, on what is there, and on whether anything forbids it.
func TestSizeOfTheStock(t *testing.T) {
	short := supply{
		slots: 2, runs: lastRuns, mean: shortRun / 20, short: shortRun, most: prefetchedFor,
	}
	for name, c := range map[string]struct {
		change func(y *supply)
		want   int
		enough bool
	}{
		"short rounds":             {func(*supply) {}, 100, false},
		"few rounds":               {func(y *supply) { y.runs-- }, 0, false},
		"rounds of 20 ms":          {func(y *supply) { y.mean = shortRun }, 0, false},
		"rounds just below":        {func(y *supply) { y.mean = shortRun - 1 }, 4, false},
		"very short rounds":        {func(y *supply) { y.mean = 0 }, 200, false},
		"many slots":               {func(y *supply) { y.slots = 128 }, mostInStock, false},
		"a half is left":           {func(y *supply) { y.stocked = 50 }, 50, false},
		"more than that is left":   {func(y *supply) { y.stocked = 51 }, 0, true},
		"a round that takes long":  {func(y *supply) { y.long = true }, 0, false},
		"a worker that may not":    {func(y *supply) { y.halted = true }, 0, false},
		"tasks, but no more short": {func(y *supply) { y.stocked, y.mean = 1, 2*shortRun }, 0, true},
	} {
		y := short
		c.change(&y)
		expect.Equal(t, y.size(), c.want, name)
		expect.Equal(t, y.hasEnough(), c.enough, name)
	}
}
