package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/redisstate"
)

// A turning store counts the calls that report the first task and claim.
type turning struct {
	*failing
	turns atomic.Int64
}

func (s *turning) Turn(
	ctx, claiming context.Context, r redisstate.ClaimParams, results ...rules.Move,
) ([]redisstate.Outcome, redisstate.ClaimResult, error, error) {
	if r.Most > 0 && slices.ContainsFunc(results, func(m rules.Move) bool { return m.ID == 1 }) {
		s.turns.Add(1)
	}
	return s.failing.Turn(ctx, claiming, r, results...)
}

// A turn is the first of two rounds on a worker with one slot. The report of the first round may claim the second task.
type turn struct {
	*world
	s      *supervisor
	failed bool // the first round fails
	many   bool // the first round leaves many files
}

// A report of a result claims the next task in the same call, unless something prevents it.
func TestAReportThatClaims(t *testing.T) {
	for name, c := range map[string]struct {
		before func(r *turn) // before the round ends
		claims bool          // in the same call
		runs   bool          // the second task
	}{
		"nothing prevents it": {claims: true, runs: true},
		"draining":            {before: func(r *turn) { r.s.drain.obey("ann", r.s.log) }},
		"stopping":            {before: func(r *turn) { r.s.endClaims(errStopping) }},
		"a failed result":     {before: func(r *turn) { r.failed = true }, runs: true},
		"many files":          {before: func(r *turn) { r.many = true }, runs: true},
		"sleep_after_success": {before: func(r *turn) { r.s.cfg.SleepAfterSuccess = time.Hour }},
	} {
		t.Run(name, func(t *testing.T) {
			r := &turn{world: newWorld(t)}
			r.cfg.Grace, r.cfg.SleepAfterFailure, r.cfg.Concurrency = time.Hour, 0, 1
			first, second := r.open("first"), r.open("second")
			store := &turning{failing: &failing{DirectStore: r.ofStore()}}
			running, end := make(chan struct{}), make(chan struct{})
			worker := r.workerOn(store, WithRunner(goRunner(func(_ context.Context, round *Round) (Ended, error) {
				if round.ID != first {
					return Ended{}, nil
				}
				close(running)
				<-end
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
			expect.Result(s.claimNow(1)).Is(t, 1)
			<-running
			s.claimsByItself()
			if c.before != nil {
				c.before(r)
			}
			close(end)
			r.executed(first)
			if c.runs {
				r.executed(second)
			}
			s.endClaims(errStopping)
			<-s.noClaims
			stop()
			expect.Equal(t, store.turns.Load() > 0, c.claims, "the report claims")
			got := r.task(second)
			expect.NotEqual(t, got.State == tdf.Open, c.runs)
			expect.Equal(t, got.Releases, 0)
		})
	}
}

// A slow store keeps the reports of some results, or of all if replicas must confirm them, until the test ends that.
type slow struct {
	broker.DirectStore
	confirms     bool
	held, resume chan struct{}
}

func (s *slow) Confirms(context.Context) bool { return s.confirms }

func (s *slow) Execute(ctx context.Context, worker string, results ...rules.Move) ([]redisstate.Outcome, error) {
	if s.confirms || slices.ContainsFunc(results, func(m rules.Move) bool { return m.ID == 1 }) {
		s.held <- struct{}{}
		<-s.resume
	}
	return s.DirectStore.Execute(ctx, worker, results...)
}

// While a report takes long, the other slots get tasks. If its result is large, their results do not wait for it.
func TestAReportThatTakesLong(t *testing.T) {
	for name, confirms := range map[string]bool{"a large result": false, "replicas must confirm it": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Concurrency = 2
			store := &slow{w.ofStore(), confirms, make(chan struct{}, 10), make(chan struct{})}
			started := make(chan int64, 10)
			worker := w.workerOn(store, Handle("p", func(_ context.Context, r *Round) error {
				started <- r.ID
				if r.ID == 1 && !confirms {
					fmt.Fprint(r.Stdout, strings.Repeat("x", largeResult+1))
				}
				return nil
			}))
			stop := w.start(worker)
			large := w.open("", forHandler("p"))
			<-store.held
			expect.Equal(t, <-started, large)
			for range 3 {
				id := w.open("", forHandler("p"))
				expect.Equal(t, <-started, id)
				if confirms {
					break
				}
				w.executed(id)
			}
			expect.Equal(t, w.task(large).State, tdf.Running)
			close(store.resume)
			w.executed(large)
			stop()
		})
	}
}

// A confirming store lets replicas confirm all reports, and refuses one of them.
type confirming struct{ *failing }

func (confirming) Confirms(context.Context) bool { return true }

// Other reports do not wait for one that Redis refuses, also if replicas must confirm them.
func TestARefusedReportDelaysNoOther(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency = 2
	store, timers := confirming{&failing{DirectStore: w.ofStore()}}, w.timers.hold()
	refused := w.open("", forHandler("p"))
	store.refused.Store(refused)
	stop := w.start(w.workerOn(store, Handle("p", func(context.Context, *Round) error { return nil })))
	timers.waitedFor(t, errorPause)
	for range 3 {
		w.executed(w.open("", forHandler("p")))
	}
	expect.Equal(t, w.task(refused).State, tdf.Running)
	store.refused.Store(0)
	timers.fire(t, errorPause)
	w.executed(refused)
	stop()
}

// Over the HTTP API, a worker with short rounds claims only for free slots, and not while a call waits for tasks.
func TestClaimsOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.API.URL, w.cfg.Concurrency = "http://127.0.0.1:1", 2
	s := supervisorOf(w.worker())
	s.claiming = t.Context()
	s.stock = stock{short: shortRun, most: prefetchedFor, n: lastRuns}
	x := newExchange(s)
	x.succeeded = true
	expect.Equal(t, *x.toClaim(), redisstate.ClaimParams{Most: 2})
	x.busy = 2
	expect.True(t, x.toClaim() == nil, "claims without a free slot")
	waits := polled{claims: make(chan redisstate.ClaimParams, 1)}
	x.busy, x.broker = 1, waits
	got := redisstate.ClaimResult{Claims: make([]redisstate.Claim, 1)}
	x.learn(call{claim: &redisstate.ClaimParams{Most: 2}, tasks: got})
	expect.Equal(t, (<-waits.claims).Most, 1, "a task has started meanwhile")
	x.idle, x.busy = false, 0
	expect.True(t, x.toClaim() == nil, "claims while a call waits")
	<-x.wakes
}

// A polled broker says what a call that waits claims.
type polled struct {
	protocol
	claims chan redisstate.ClaimParams
}

func (w polled) Await(_, _ context.Context, claim redisstate.ClaimParams, _ time.Duration) (woken bool,
	c redisstate.ClaimResult, err error,
) {
	w.claims <- claim
	return false, c, nil
}

// RunOnce runs one task, although the report of this task could claim another.
func TestRunOnceRunsOneTask(t *testing.T) {
	w := newWorld(t)
	first, second := w.open(""), w.open("")
	w.runOnce(w.running(func(context.Context, *Round) (Ended, error) { return Ended{}, nil }))
	expect.Equal(t, w.task(first).State, tdf.Succeeded, "the first task")
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
	store, timers := &turning{failing: &failing{DirectStore: w.ofStore()}}, w.timers.hold()
	store.refused.Store(refused)
	worker := w.workerOn(store, WithRunner(goRunner(func(_ context.Context, r *Round) (Ended, error) {
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

// A wake token that comes while a claim is under way is not lost: Redis may have answered the claim before the task of
// the token was opened.
func TestAWakeTokenDuringAClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := supervisorOf(w.worker())
	s.claiming = t.Context()
	x := newExchange(s)
	x.calling, x.awaiting, x.idle = true, true, true
	x.woke(call{woken: true})
	x.calling = false
	x.learn(call{claim: &redisstate.ClaimParams{Most: 1}})
	expect.True(t, !x.idle, "the worker waits for another token")
}

// A worker whose claim has filled its slots takes no wake token: tokens are for others.
func TestABusyWorkerTakesNoToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := supervisorOf(w.worker())
	s.claiming = t.Context()
	x, ended := newExchange(s), 0
	x.awaiting, x.endAwait = true, func() { ended++ }
	got := redisstate.ClaimResult{Claims: make([]redisstate.Claim, 1)}
	x.learn(call{claim: &redisstate.ClaimParams{Most: 2}, tasks: got})
	expect.Equal(t, ended, 0)
	x.learn(call{claim: &redisstate.ClaimParams{Most: 1}, tasks: got})
	expect.Equal(t, ended, 1)
}
