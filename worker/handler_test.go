package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// forHandler makes a task that only a worker with a handler for the program may claim.
func forHandler(program string) func(*task.Properties) {
	return func(d *task.Properties) { d.Program, d.Source = program, "" }
}

// A handler's progress, updates, checkpoint and result arrive in Redis like those of a program.
func TestHandlerReports(t *testing.T) {
	w := newWorld(t)
	id := w.open(`{"n": 12}`, forHandler("square"), timeout)
	worker := w.worker(Handle("square", func(_ context.Context, r *Round) error {
		var in struct{ N int }
		if err := r.Bind(&in); err != nil {
			return err
		}
		if r.ID != id || r.Number != 0 || r.Program != "square" || r.Worker != "w1" || r.Slot != 1 || time.Until(r.Deadline) <= 0 {
			return fmt.Errorf("the handler got %+v", r)
		}
		r.Progress(0.5, "half\nof it")
		r.Progress(2, "all\nof it")
		r.Update("first")
		r.Update("second\nthird")
		fmt.Fprint(r.Stdout, "squared")
		return errors.Join(r.SetCheckpoint([]byte("state")), r.SetResult(1), r.SetResult(in.N*in.N))
	}))
	w.runOnce(worker)
	got := w.finished(id)
	r := got.Current()
	if got.State != tdf.Succeeded || r.Result != "144" || r.Output != "squared" || got.Checkpoint != "state" || r.Progress != (task.Progress{Fraction: 1, Text: "all of it"}) {
		t.Errorf("%s %+v, checkpoint %q, error %q", got.State, r, got.Checkpoint, got.LastError())
	}
	w.updated(id, "0-1 first", "0-2 second", "0-3 third")
}

// What a handler sets before it asks for its directory is then in the directory.
func TestHandlerWithADirectory(t *testing.T) {
	w := newWorld(t)
	id := w.open("", forHandler("p"))
	worker := w.worker(Handle("p", func(_ context.Context, r *Round) error {
		err := errors.Join(r.SetResult(1), r.SetCheckpoint([]byte("state")))
		r.Update("first")
		dir, err2 := r.Dir()
		result, err3 := os.ReadFile(filepath.Join(dir, "result.json"))
		r.Update("second")
		fmt.Fprint(r.Stdout, string(result))
		return errors.Join(err, err2, err3, r.SetResult(2))
	}))
	w.runOnce(worker)
	got := w.finished(id)
	expect.Equal(t, got.LastOutput(), "1", got.LastError())
	expect.Equal(t, got.Current().Result, "2")
	expect.Equal(t, got.Checkpoint, "state")
	w.updated(id, "0-1 first", "0-2 second")
}

// A handler that changes its thread and does not unlock it spoils the thread for no other round: Go ends such a thread with the goroutine
// of its handler.
func TestAHandlerMayChangeItsThread(t *testing.T) {
	w := newWorld(t)
	const name = "changed"
	worker := w.worker(Handle("p", func(_ context.Context, r *Round) error {
		runtime.LockOSThread()
		was, err := os.ReadFile("/proc/thread-self/comm")
		fmt.Fprint(r.Stdout, strings.TrimSpace(string(was)) == name)
		return errors.Join(err, os.WriteFile("/proc/thread-self/comm", []byte(name), 0))
	}))
	stop := w.start(worker)
	for range 5 {
		one := w.executed(w.open("", forHandler("p")))
		expect.Equal(t, one.LastOutput(), "false", "the thread has the name that another handler gave it", one.LastError())
	}
	stop()
}

// requeue takes a running task from its worker, as a user does.
func (w *world) requeue(id int64) {
	w.Helper()
	give := expect.Result(rules.Release(w.task(id), "by hand")).Value(w)
	must(w, w.applied(give))
}

func (w *world) applied(m rules.Move) error {
	outcomes, err := w.store.Apply(w.Context(), "test", redisstate.Unit{Moves: []rules.Move{m}})
	if err != nil {
		return err
	}
	return outcomes[0].Err
}

// A worker with handlers claims no task with a source and no task of another program. A worker without handlers claims no
// task without a source.
func TestHandlersClaimOnlyTheirTasks(t *testing.T) {
	w := newWorld(t)
	w.script("a", "#!/bin/sh\nexit 0\n")
	other, script, own := w.open("", forHandler("other")), w.open("", func(d *task.Properties) { d.Program = "a" }), w.open("", forHandler("a"))
	handling, running := w.worker(Handle("b", nothing), Handle("a", nothing)), w.worker()
	for _, step := range []struct {
		worker *Worker
		want   map[int64]tdf.State
	}{
		{handling, map[int64]tdf.State{own: tdf.Succeeded, script: tdf.Open, other: tdf.Open}},
		{handling, map[int64]tdf.State{own: tdf.Succeeded, script: tdf.Open, other: tdf.Open}},
		{running, map[int64]tdf.State{own: tdf.Succeeded, script: tdf.Succeeded, other: tdf.Open}},
		{running, map[int64]tdf.State{own: tdf.Succeeded, script: tdf.Succeeded, other: tdf.Open}},
	} {
		expect.Result(step.worker.RunOnce(t.Context())).OK(t)
		for id, want := range step.want {
			got := w.task(id)
			expect.Equal(t, got.State, want, "task", id)
			expect.Equal(t, got.UnfitHosts, 0, "task", id)
		}
	}
}

func nothing(context.Context, *Round) error { return nil }

// After the timeout, the handler's error is ignored. Its output is kept.
func TestHandlerThatAnswersTooLate(t *testing.T) {
	for _, answer := range []error{Permanent(errors.New("x")), Later(time.Hour, nil), Unfit(errors.New("x")), errors.New("x")} {
		w := newWorld(t)
		id := w.open("", forHandler("p"), timeout)
		worker := w.worker(Handle("p", func(ctx context.Context, r *Round) error {
			fmt.Fprint(r.Stdout, "so far")
			w.timers.fireBetween(t, 15*time.Minute, 17*time.Minute)
			<-ctx.Done()
			return answer
		}))
		w.timers.hold()
		w.runOnce(worker)
		got := w.task(id)
		expect.Equal(t, got.State, tdf.TimedOut)
		expect.Equal(t, got.Releases, 0)
		expect.Equal(t, got.LastOutput(), "so far")
	}
}

func TestInvalidOptions(t *testing.T) {
	w := newWorld(t)
	runner := goRunner(func(context.Context, *Round) (Ended, error) { return Ended{}, nil })
	for want, with := range map[string][]Option{
		"the Runner is nil": {WithRunner(nil)},
		"the log is nil":    {WithLog(nil)},
		"worker.WithArchives(archive.Compressions()...)":  nil,
		`program "p" has a nil handler`:                   {Handle("p", nil)},
		`program "q" has a nil handler`:                   {HandleKind[int, int]("q", nil)},
		"a function of Use is nil":                        {Use(nil)},
		`handle program "a/b": program: "a/b" contains`:   {Handle("a/b", nothing)},
		`handle program "": program: is empty`:            {Handle("", nothing)},
		`program "p" has two handlers`:                    {Handle("p", nothing), Handle("p", nothing)},
		"a worker has either a Runner or handlers":        {Handle("p", nothing), WithRunner(runner)},
		"make a worker: a worker has one Runner, not two": {WithRunner(runner), WithRunner(runner)},
	} {
		expect.Result(New("w1", w.cfg, with...)).Fails(t, want)
	}
}

// Load takes the log from section [log], unless an option sets it.
func TestLoadSetsTheLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker.cfg")
	expect.NoError(t, os.WriteFile(file, []byte("[tdf]\nnamespace=n\n[log]\nlevel=error\n"), 0o600))
	quiet := expect.Result(Load("w1", file, Handle("p", nothing))).Value(t).log
	expect.True(t, !quiet.Enabled(t.Context(), slog.LevelWarn), "warnings are logged")
	own := slog.New(slog.DiscardHandler)
	expect.Equal(t, expect.Result(Load("w1", file, WithLog(own), Handle("p", nothing))).Value(t).log, own)
}

// Marked errors can be wrapped. Marking a nil error gives nil, except with Later.
func TestMarkedErrors(t *testing.T) {
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err error
		is  func(error) bool
	}{
		"permanent": {Permanent(cause), isPermanent},
		"later":     {Later(time.Minute, cause), isLater},
		"unfit":     {Unfit(cause), isUnfit},
	} {
		wrapped := fmt.Errorf("step 3: %w", c.err)
		expect.True(t, c.is(wrapped), name, wrapped)
		expect.FailsWith(t, wrapped, cause, name)
		expect.Equal(t, wrapped.Error(), "step 3: cause", name)
		expect.True(t, !c.is(cause), name, "an error that was not marked counts as marked")
	}
	expect.NoError(t, Permanent(nil), "marking a nil error: want nil from Permanent and Unfit, and an error from Later")
	expect.NoError(t, Unfit(nil), "marking a nil error: want nil from Permanent and Unfit, and an error from Later")
	expect.Fails(t, Later(0, nil), "", "marking a nil error: want nil from Permanent and Unfit, and an error from Later")
}

// A Runner says what its round has cost.
func TestWhatARoundHasCost(t *testing.T) {
	w := newWorld(t)
	id := w.open("", timeout)
	w.runOnce(w.running(func(context.Context, *Round) (Ended, error) {
		return Ended{Exit: "0", CPU: time.Minute, Elapsed: 2 * time.Minute, MaxRSS: 1 << 20}, nil
	}))
	r := w.finished(id).Current()
	expect.Equal(t, r.CPUSeconds, 60)
	expect.Equal(t, r.Seconds, 120)
	expect.Equal(t, r.MaxRSS, 1<<20)
}

// The worker cannot store the output of a handler, and the handler ignores the error. Its round does not succeed with a part of
// the output.
func TestHandlerIgnoresThatItsOutputIsLost(t *testing.T) {
	w := newWorld(t)
	must(t, os.Mkdir(w.path(ownDir), 0o755))
	must(t, os.WriteFile(w.path(roundsDir), nil, 0o644)) // so that no file can be made
	id := w.open("", forHandler("p"))
	w.runOnce(w.worker(Handle("p", func(_ context.Context, r *Round) error {
		for range 100 {
			_, _ = r.Stdout.Write(make([]byte, 1<<10))
		}
		return nil
	})))
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Failed)
	expect.Contains(t, got.LastError(), "stdout could not be stored: ")
}

// errOther is an error that a handler may get from a manager, about another task.
var errOther = &tdf.StateError{ID: 99, State: tdf.Archived}

// A handler's own error may contain a StateError. If this StateError is about another task, it says nothing about the
// handler's task.
func TestStateErrorOfAHandler(t *testing.T) {
	for name, c := range map[string]struct {
		mark  func(error) error
		after tdf.State
	}{
		"later": {func(err error) error { return Later(time.Hour, err) }, tdf.Open},
		"unfit": {Unfit, tdf.Open},
		"plain": {func(err error) error { return err }, tdf.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.open("", forHandler("p"))
			w.runOnce(w.worker(Handle("p", func(_ context.Context, r *Round) error {
				r.Update("seen")
				return errors.Join(r.SetCheckpoint([]byte("state")), c.mark(errOther))
			})))
			got := w.task(id)
			expect.Equal(t, got.State, c.after)
			expect.Equal(t, got.Checkpoint, "state")
			expect.Equal(t, got.Losses, 0)
			w.updated(id, "0-1 seen")
		})
	}
}

// Use wraps the handlers of all programs, the first function outermost.
func TestWrappedHandlers(t *testing.T) {
	var said []string
	wrap := func(name string) func(Handler) Handler {
		return func(next Handler) Handler {
			return func(ctx context.Context, r *Round) error {
				said = append(said, name)
				return next(ctx, r)
			}
		}
	}
	o := expect.Result(newOptions([]Option{Use(wrap("outer"), wrap("inner")), Handle("p", nothing), Handle("q", nothing)})).Value(t)
	for _, program := range []string{"p", "q"} {
		expect.NoError(t, o.handlers[program](t.Context(), nil))
	}
	expect.Equal(t, said, []string{"outer", "inner", "outer", "inner"})
}
