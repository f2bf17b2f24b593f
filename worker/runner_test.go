package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A goRunner is a Runner that calls a function.
type goRunner func(ctx context.Context, r *Round) (Ended, error)

func (f goRunner) Run(ctx context.Context, r *Round) (Ended, error) { return f(ctx, r) }

func (w *world) running(f goRunner) *Worker {
	return w.worker(WithRunner(f))
}

func TestGoRunner(t *testing.T) {
	for name, c := range map[string]struct {
		run  goRunner
		want ended
	}{
		"well": {func(_ context.Context, r *Round) (Ended, error) {
			fmt.Fprint(r.Stdout, strings.Join(r.Args, "+"), " of ", r.ID)
			return Ended{}, nil
		}, ended{tdf.Succeeded, "a+b c of 1", "", "0"}},
		"an error": {func(_ context.Context, r *Round) (Ended, error) {
			fmt.Fprint(r.Stderr, "first")
			return Ended{}, errors.New("second")
		}, ended{tdf.Failed, "", "first\nsecond", "1"}},
		"an error without words": {
			func(context.Context, *Round) (Ended, error) { return Ended{}, errors.New("") },
			ended{tdf.Failed, "", "the handler returned an error without a text", "1"},
		},
		"an exit status": {
			func(context.Context, *Round) (Ended, error) { return Ended{Exit: "3"}, nil },
			ended{tdf.Failed, "", "the round ended with exit status 3 and printed nothing to stderr", "3"},
		},
		"a bad result": {func(_ context.Context, r *Round) (Ended, error) {
			return Ended{Exit: "3"}, os.WriteFile(filepath.Join(dirOf(r), "result.json"), []byte(`{`), 0o644)
		}, ended{tdf.Failed, "", "result.json: it is not JSON: unexpected end of JSON input (byte 1) (the round ended with 3)", ""}},
		"a result": {func(_ context.Context, r *Round) (Ended, error) {
			return Ended{}, os.WriteFile(filepath.Join(dirOf(r), "result.json"), []byte(`{"a": 1}`), 0o644)
		}, ended{tdf.Succeeded, "", "", "0"}},
		"a panic": {func(context.Context, *Round) (Ended, error) { panic("oh no") }, ended{tdf.Failed, "", "panic: oh no\n\ngoroutine ", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.open("a 'b c'", func(d *task.Properties) { d.FailOn = tdf.FailOnExit })
			w.runOnce(w.running(c.run))
			got := endOf(w.finished(id))
			if strings.HasPrefix(got.Error, c.want.Error) && (c.want.Exit == "" || c.want.Exit == exitPanic) {
				got.Error = c.want.Error
			}
			expect.Equal(t, got, c.want)
			if name == "a result" {
				expect.Equal(t, w.task(id).Current().Result, `{"a": 1}`)
			}
		})
	}
}

// Panics with the same message have the same fingerprint, even if their stacks differ.
func TestEqualPanicsHaveOneFingerprint(t *testing.T) {
	w := newWorld(t)
	worker := w.running(func(_ context.Context, r *Round) (Ended, error) {
		if r.Args[0] == "error" {
			return Ended{}, errors.New("no model " + r.Args[1])
		}
		panic(strings.Repeat("deep ", 1e6) + r.Args[1])
	})
	for _, input := range []string{"panic 1", "panic 2", "error 3", "error 4"} {
		id := w.open(input)
		w.runOnce(worker)
		expect.Compare(t, len(w.finished(id).Rounds[0].Error), "<=", broker.MaxReason+10, input)
	}
	failures := expect.Result(admin.New(w.manager()).Failures(t.Context(), manager.Query{}, "")).Value(t)
	var got []string
	for _, g := range failures.Groups {
		got = append(got, fmt.Sprintf("%s: %.20s (%d)", g.How, g.Line, g.Tasks))
	}
	slices.Sort(got)
	want := []string{"exit status 1: no model <n> (2)", "exit status 2: panic: deep deep dee (2)"}
	expect.True(t, slices.Equal(got, want), got, "want", want)
}

func (w *world) manager() *manager.Manager {
	w.Helper()
	cfg, err := config.DefaultManager(w.cfg.Namespace)
	must(w, err)
	host, port, _ := strings.Cut(redistest.Shared(w), ":")
	cfg.Redis.Host = host
	cfg.Redis.Port, err = strconv.Atoi(port)
	must(w, err)
	o := manager.OptionsOf(cfg)
	o.Log = w.logger()
	m := expect.Result(manager.New(o)).Value(w)
	w.Cleanup(func() { m.Close() })
	return m
}

// A task that a Runner runs needs no source that can be fetched.
func TestTaskForARunnerNeedsNoSource(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = time.Hour
	id := w.withoutProgram(w.open("", func(d *task.Properties) { d.StartAfter = 9e9 }))
	explained := func() admin.Check {
		e := expect.Result(admin.New(w.manager()).Explain(t.Context(), id)).Value(t)
		return e.Checks[slices.IndexFunc(e.Checks, func(g admin.Check) bool { return g.Name == "source" })]
	}
	expect.Equal(t, explained().State, admin.Ahead, "without a worker")
	stop := w.start(w.running(func(context.Context, *Round) (Ended, error) { return Ended{}, nil }))
	eventually(t, "the worker", func() bool { return w.workerState() == presence.WorkerWorking })
	got := explained()
	expect.Equal(t, got.State, admin.Passed)
	expect.Contains(t, got.Text, "need no source: w1")
	stop()
}

// counting is a store that counts its calls.
type counting struct {
	broker.DirectStore
	mu              sync.Mutex
	claims, reports []int
}

func (c *counting) Turn(
	ctx, claiming context.Context, r redisstate.ClaimParams, results ...rules.Move,
) ([]redisstate.Outcome, redisstate.ClaimResult, error, error) {
	if len(results) > 0 {
		c.mu.Lock()
		c.reports = append(c.reports, len(results))
		c.mu.Unlock()
	}
	outcomes, claimed, err, claimErr := c.DirectStore.Turn(ctx, claiming, r, results...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(claimed.Claims) > 0 {
		c.claims = append(c.claims, len(claimed.Claims))
	}
	return outcomes, claimed, err, claimErr
}

// One claim fills all free slots. Rounds that end during a report are reported together in the next call.
func TestSlots(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency = 8
	for range 20 {
		w.open("")
	}
	store := &counting{DirectStore: w.ofStore()}
	worker := w.workerOn(store)
	together := make(chan struct{}, 20)
	release := make(chan struct{})
	worker.runner = goRunner(func(context.Context, *Round) (Ended, error) {
		together <- struct{}{}
		<-release
		return Ended{}, nil
	})
	stop := w.start(worker)
	for range 8 {
		<-together
	}
	select {
	case <-together:
		t.Error("a ninth round runs")
	default:
	}
	close(release)
	for id := range int64(20) {
		w.executed(id + 1)
	}
	stop()
	store.mu.Lock()
	defer store.mu.Unlock()
	expect.Equal(t, store.claims[0], 8, "claims of")
	expect.True(t, len(store.reports) <= 20, "reports of", store.reports)
}

// A round that a host cannot run is released, at most three times in all.
func TestUnfitHost(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/no/such/interpreter\n")
	id := w.open("")
	worker := w.worker()
	for i := range 3 {
		w.runOnce(worker)
		one := w.task(id)
		expect.MustEqual(t, one.State, tdf.Open)
		expect.MustEqual(t, one.UnfitHosts, i+1)
		expect.MustEqual(t, one.Releases, i+1)
		expect.MustEqual(t, one.Fails, 0)
		expect.Contains(t, one.Log, `released: run.sh asks for the interpreter "/no/such/interpreter"`)
		now := expect.Result(w.store.Now(t.Context())).Value(t)
		expect.Compare(t, one.Ready, ">", now, "it is tried again later")
		must(t, w.client().ZAdd(t.Context(), w.store.Keys.List(tdf.Open), redis.Z{Score: float64(now), Member: id}).Err())
	}
	ran, err := worker.RunOnce(t.Context())
	expect.True(t, !ran, "the worker ran a task whose program is held", ran, err)
	expect.NoError(t, err)
	held := w.task(id)
	expect.Equal(t, held.HeldFor(), task.SourceReason(held.SourceName()))
	testspace.StartedSource(t, w.store, held.SourceName())
	expect.Result(w.newServer().RunOnce(t.Context())).OK(t)
	w.runOnce(worker)
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Failed)
	expect.Contains(t, got.LastError(), "/no/such/interpreter")
}
