package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate"
)

// A turning store counts the calls that report and claim.
type turning struct {
	*failing
	turns atomic.Int64
}

func (s *turning) Turn(
	ctx, claiming context.Context, r redisstate.ClaimParams, results ...tdf.Move,
) ([]redisstate.Outcome, redisstate.ClaimResult, error, error) {
	if len(results) > 0 && r.Most > 0 {
		s.turns.Add(1)
	}
	return s.failing.Turn(ctx, claiming, r, results...)
}

// A turn is the first of two rounds on a worker with one slot. The report of the first round may claim the second task.
type turn struct {
	*world
	s      *supervisor
	store  *turning
	failed bool // the first round fails
	many   bool // the first round leaves many files
}

// A report of a result claims the next task, unless something prevents it. Each case of this test but one prevents it.
func TestAReportThatClaims(t *testing.T) {
	for name, c := range map[string]struct {
		before func(r *turn) // before the round ends
		after  func(r *turn) // while the report waits for its next try
		claims bool
	}{
		"nothing prevents it": {claims: true},
		"draining":            {before: func(r *turn) { r.s.drain.obey("ann", r.s.log) }},
		"stopping":            {before: func(r *turn) { r.s.endClaims(errStopping) }},
		"a failed result":     {before: func(r *turn) { r.failed = true }},
		"many files":          {before: func(r *turn) { r.many = true }},
		"a result that Redis has refused before": {
			before: func(r *turn) {
				r.store.reports.Store(1)
				r.s.once.Store(true) // so that the first report claims nothing
			},
			after: func(r *turn) {
				r.timers.waitedFor(r, errorPause)
				r.s.once.Store(false)
				r.timers.fire(r, errorPause)
			},
		},
		"sleep_after_success": {before: func(r *turn) { r.s.cfg.SleepAfterSuccess = time.Hour }},
		"passing":             {before: func(r *turn) { r.s.passing.Store(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := &turn{world: newWorld(t)}
			r.cfg.Grace, r.cfg.SleepAfterFailure = time.Hour, 0
			first, second := r.open("first"), r.open("second")
			r.store = &turning{failing: &failing{Store: r.world.store}}
			running, end := make(chan struct{}), make(chan struct{})
			worker := r.workerOn(r.store, WithRunner(goRunner(func(_ context.Context, round *Round) (Ended, error) {
				if round.ID == first {
					close(running)
					<-end
				}
				for i := 0; r.many && i < 200; i++ {
					must(r, os.WriteFile(filepath.Join(dirOf(round), strconv.Itoa(i)), nil, 0o600))
				}
				if r.failed {
					fmt.Fprintln(round.Stderr, "failed")
				}
				return Ended{}, nil
			})))
			r.timers.hold()
			s, stop := r.supervisor(worker)
			r.s = s
			_, _, err := s.claim(1, 0)
			must(t, err)
			<-running
			s.once.Store(false)
			if c.before != nil {
				c.before(r)
			}
			close(end)
			if c.after != nil {
				c.after(r)
			}
			r.executed(first)
			expect.Equal(t, r.store.turns.Load() > 0, c.claims, "the report claims")
			if c.claims {
				r.executed(second)
			}
			stop()
			got := r.task(second)
			expect.NotEqual(t, got.State == tdf.Open, c.claims)
			expect.Equal(t, got.Releases, 0)
		})
	}
}

// RunOnce runs one task, although the report of this task could claim another.
func TestRunOnceRunsOneTask(t *testing.T) {
	w := newWorld(t)
	first, second := w.open(""), w.open("")
	w.runOnce(w.running(func(context.Context, *Round) (Ended, error) { return Ended{}, nil }))
	expect.Equal(t, w.task(first).State, tdf.Executed, "the first task")
	got := w.task(second)
	expect.Equal(t, got.State, tdf.Open)
	expect.Equal(t, got.Releases, 0)
}

// In the same call, Redis refuses a result, and the worker claims a task. The slot is not free, because it still holds
// the refused result. So the worker releases the claimed task, and does this only once.
func TestATaskClaimedWithARefusedResult(t *testing.T) {
	w := newWorld(t)
	w.cfg.SleepAfterFailure = 0
	refused, next := w.open("refused"), w.open("next")
	store, timers := &turning{failing: &failing{Store: w.store}}, w.timers.hold()
	store.refused.Store(refused)
	worker := w.workerOn(store, WithRunner(goRunner(func(_ context.Context, r *Round) (Ended, error) {
		eventually(t, "no claim under way", r.execution.s.claimsNothing) // then the report of this round may claim a task
		fmt.Fprintln(r.Stdout, r.Args[0])
		return Ended{}, nil
	})))
	ctx, stop := context.WithCancel(t.Context())
	wait := w.until(ctx, worker)
	eventually(t, "the release", func() bool { return w.task(next).Releases == 1 })
	for _, pause := range []time.Duration{errorPause, 2 * errorPause, 4 * errorPause, 8 * errorPause} {
		timers.waitedFor(t, pause)
		expect.Equal(t, w.task(refused).State, tdf.Running, "the task with the refused result")
		got := w.task(next)
		expect.Equal(t, got.State, tdf.Open)
		expect.Equal(t, got.Releases, 1)
		timers.fire(t, pause)
	}
	w.logged(`msg=released task=2 round=0 program=p reason="` + errNoSlot.Error() + `"`)
	timers.waitedFor(t, longestPause)
	expect.Equal(t, store.turns.Load(), 1, "reports claimed tasks")
	store.refused.Store(0)
	timers.fire(t, longestPause)
	for id, want := range map[int64]string{refused: "refused\n", next: "next\n"} {
		got := w.executed(id)
		expect.Equal(t, got.LastOutput(), want, id)
		expect.Compare(t, strings.Count(got.Log, "released"), "<=", 1, id)
	}
	expect.Equal(t, w.task(next).Releases, 1, "the other task was released … times")
	stop()
	wait()
}

// claimsNothing reports whether no claim reserves a slot.
func (s *supervisor) claimsNothing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserved == 0
}
