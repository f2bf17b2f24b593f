package managertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A faultyRun is a run of a pipeline that opens so large tasks that they need several chunks.
type faultyRun struct {
	a     int            // the number of tasks in stage a
	calls map[string]int // calls of the functions, in all runs of the pipeline
}

// large is the number of tasks in stage b. They have more than 4 MiB, so they need two chunks.
const large = 36

func (f *faultyRun) pipeline(m *manager.Manager) *manager.Pipeline {
	open := func(s *manager.Stage, kind string, n int) {
		for i := range n {
			s.Open(manager.Definition{Program: "p", Meta: fmt.Sprint(kind, " ", i), Input: strings.Repeat("x", 120<<10)})
		}
	}
	p := m.Pipeline("p")
	p.Start("a", func(_ context.Context, s *manager.Stage) error {
		open(s, "a", f.a)
		return nil
	})
	p.Each("a", func(_ context.Context, t *manager.Finished) error {
		f.calls[t.Meta]++
		if t.Meta == "a 2" {
			t.Open(manager.Definition{Program: "p", Group: "p/b", Meta: "follow-up"})
		}
		return nil
	})
	p.After("a", "b", func(ctx context.Context, s *manager.Stage) error {
		f.calls["after a"]++
		n := 0
		for t, err := range p.Tasks(ctx, "a") {
			if err != nil {
				return err
			}
			if want := fmt.Sprint("a ", n); t.Meta != want || t.State != tdf.Archived {
				return fmt.Errorf("task %q is %s, want %q", t.Meta, t.State, want)
			}
			n++
		}
		if n != f.a {
			return fmt.Errorf("%d tasks, want %d", n, f.a)
		}
		open(s, fmt.Sprint("b", f.calls["after a"]), large)
		return nil
	})
	p.After("b", "c", func(_ context.Context, s *manager.Stage) error {
		f.calls["after b"]++
		open(s, "c", 2)
		return nil
	})
	p.After("c", "", func(context.Context, *manager.Stage) error { f.calls["after c"]++; return nil })
	return p
}

// crash runs the pipeline until its n-th call of a script, whose reply is lost. It reports whether there was such a call.
func (f *faultyRun) crash(t *testing.T, x *Tester, n int) (crashed bool) {
	proxy := redistest.NewProxy(t, x.world.redis.Addr())
	address := x.world.address()
	expect.Result(fmt.Sscanf(proxy.Addr, "127.0.0.1:%d", &address.Port)).OK(t)
	store, err := redisstate.Connect(t.Context(), address, x.options.Namespace, slog.New(slog.DiscardHandler))
	x.world.check(err)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	context.AfterFunc(ctx, func() { store.Close() })
	stop := errors.New("crash")
	proxy.DropReplies(1, func(command []string) bool {
		if !redistest.Scripts(command) { // all changes are scripts
			return false
		}
		if n--; n == 0 {
			cancel(stop)
		}
		return n == 0
	})
	if err := f.pipeline(x.manager(store)).Run(ctx); n > 0 { // the last call, which ends leases, may fail
		expect.NoError(t, err)
	}
	x.endLeases(t)
	return n <= 0
}

// endLeases does what 30 s do in production: it ends the leases of managers that crashed. A test's clock jumps, so there they hold.
func (x *Tester) endLeases(t *testing.T) {
	all, err := x.world.store.Callbacks.Handlings(t.Context(), x.world.now)
	expect.NoError(t, err)
	for _, h := range all {
		expect.NoError(t, x.world.store.Callbacks.EndHandlings(t.Context(), h.ID))
	}
}

// check checks that each task was opened once, and that each function was called.
func (f *faultyRun) check(t *testing.T, x *Tester) {
	t.Helper()
	seen := map[string]int{}
	for _, task := range x.Tasks() {
		expect.Equal(t, task.State, tdf.Archived, "task", task.Meta, "of", task.Group)
		seen[task.Group]++
		seen[task.Meta]++
	}
	want := map[string]int{"p/a": f.a, "p/b": large + 1, "p/c": 2, "follow-up": 1, "c 0": 1, "c 1": 1}
	kind := "b1"
	if seen["b1 0"] == 0 {
		kind = fmt.Sprint("b", f.calls["after a"])
	}
	for i := range f.a {
		want[fmt.Sprint("a ", i)] = 1
	}
	for i := range large {
		want[fmt.Sprint(kind, " ", i)] = 1
	}
	expect.Len(t, seen, len(want), "different tasks")
	for name, n := range want {
		expect.Equal(t, seen[name], n, name, "tasks")
		if strings.HasPrefix(name, "a ") {
			expect.NotEqual(t, f.calls[name], 0, "no callback for", name)
		}
	}
	for _, name := range []string{"after a", "after b", "after c"} {
		expect.NotEqual(t, f.calls[name], 0, name)
		expect.Compare(t, f.calls[name], "<=", 2, name)
	}
}

// A pipeline that crashes after any of its changes continues with another manager. Each task is opened once. A run of the test tries
// every twelfth change, and begins with any of the first twelve. If TDF_SOAK is set, it tries all of them, and the first stage needs two chunks, too.
func TestSoakPipelineCrashes(t *testing.T) {
	a, step := 3, 12
	if os.Getenv("TDF_SOAK") != "" {
		a, step = large, 1
	}
	for n, crashed := 1+rand.IntN(step), true; crashed; n += step {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := &faultyRun{a: a, calls: map[string]int{}}
			x := NewWith(t, manager.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			x.Program("p", func(Run) Result { return Result{} })
			crashed = f.crash(t, x, n)
			expect.NoError(t, f.pipeline(x.Manager).Run(t.Context()))
			f.check(t, x)
		})
	}
}

// A function that fails runs again after its pause, also if nothing else happens for a long time.
func TestFailedStageIsTriedAgainAfterAPause(t *testing.T) {
	tm := New(t)
	tm.Program("long", func(Run) Result { return Result{Duration: time.Hour} })
	var calls []time.Time
	p := tm.Manager.Pipeline("p")
	p.Start("long", func(_ context.Context, s *manager.Stage) error {
		s.Open(manager.Definition{Program: "long"})
		return nil
	})
	p.Start("fails", func(context.Context, *manager.Stage) error {
		if calls = append(calls, tm.Now()); len(calls) < 4 {
			return errors.New("no")
		}
		return nil
	})
	expect.NoError(t, p.Run(t.Context()))
	for i, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		expect.Equal(t, calls[i+1].Sub(calls[i]).Round(100*time.Millisecond), pause, "pause", i)
	}
}

// If Redis refuses a step again and again because the group is not closed, the function runs again after pauses.
func TestRefusedStepIsTriedAgainAfterAPause(t *testing.T) {
	tm := New(t)
	tm.Program("p", func(Run) Result { return Result{} })
	client := redistest.Client(t, redis.Options{Addr: tm.world.redis.Addr()})
	mark := func(mark string) {
		expect.NoError(t, client.HSet(t.Context(), tm.options.Namespace+":groups", "p/a", mark).Err())
	}
	var calls []time.Time
	p := tm.Manager.Pipeline("p")
	p.Start("a", func(_ context.Context, s *manager.Stage) error {
		s.Open(manager.Definition{Program: "p"})
		return nil
	})
	p.After("a", "", func(context.Context, *manager.Stage) error {
		mark("odd")
		if calls = append(calls, tm.Now()); len(calls) == 3 {
			mark("closed 1")
		}
		return nil
	})
	expect.NoError(t, p.Run(t.Context()))
	expect.MustLen(t, calls, 3)
	pause := calls[2].Sub(calls[1])
	expect.True(t, pause >= time.Second, "the third call came", pause, "after the second")
}
