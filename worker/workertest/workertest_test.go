package workertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/worker"
	"github.com/tdf-framework/tdf/worker/workertest"
)

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		task workertest.Task
		h    worker.Handler
		want workertest.Result // the expected Result, without Err
		err  string            // the beginning of the expected error; "" means no error
	}{
		"everything": {
			workertest.Task{Input: "a 'b c'", Round: 2, FailOn: tdf.FailOnExit, Checkpoint: []byte("old"), LastError: "boom"},
			func(_ context.Context, r *worker.Round) error {
				fmt.Fprintf(r.Stdout, "%d %d %q %s %s", r.ID, r.Number, r.Args, r.Checkpoint, r.LastError)
				fmt.Fprint(r.Stderr, "warning")
				r.Update("one")
				r.Update("two")
				r.Progress(0.25, "a quarter")
				return errors.Join(r.SetCheckpoint([]byte("new")), r.SetResult(map[string]int{"n": 1}))
			},
			workertest.Result{
				Output: `1 2 ["a" "b c"] old boom`, Error: "warning", Exit: "0", JSON: `{"n":1}`, Checkpoint: []byte("new"),
				Updates: []string{"one", "two"}, Progress: 0.25, ProgressText: "a quarter",
			},
			"",
		},
		"text on Stderr": {
			workertest.Task{},
			func(_ context.Context, r *worker.Round) error {
				fmt.Fprint(r.Stderr, "warning")
				return r.SetResult(1)
			},
			workertest.Result{Error: "warning", Exit: "0", JSON: "1"},
			"the round fails because the handler wrote to Stderr (fail_on=stderr): warning",
		},
		"an error after the result": {
			workertest.Task{FailOn: tdf.FailOnExit},
			func(_ context.Context, r *worker.Round) error {
				return errors.Join(r.SetResult(1), errors.New("after it"))
			},
			workertest.Result{Error: "after it", Exit: "1", JSON: "1"},
			"after it",
		},
		"a checkpoint that is too large": {
			workertest.Task{},
			func(_ context.Context, r *worker.Round) error { return r.SetCheckpoint(make([]byte, 2<<20)) },
			workertest.Result{Exit: "0", Problems: []string{
				"checkpoint: 2097152 bytes, more than 1048576; the previous checkpoint stays",
			}},
			"",
		},
		"an error and a result that is too large": {
			workertest.Task{},
			func(_ context.Context, r *worker.Round) error {
				return errors.Join(r.SetResult(strings.Repeat("x", 2<<20)), errors.New("after it"))
			},
			workertest.Result{Error: "result.json: 2097154 bytes, more than 1048576\nafter it"},
			"result.json: ",
		},
		"an error": {
			workertest.Task{},
			func(_ context.Context, r *worker.Round) error {
				fmt.Fprint(r.Stderr, "first")
				return errors.New("second")
			},
			workertest.Result{Error: "first\nsecond", Exit: "1"},
			"second",
		},
		"permanent": {
			workertest.Task{},
			func(context.Context, *worker.Round) error { return worker.Permanent(errors.New("never")) },
			workertest.Result{Error: "never", Exit: "1", Permanent: true},
			"never",
		},
		"later": {
			workertest.Task{},
			func(context.Context, *worker.Round) error { return worker.Later(time.Hour, errors.New("not yet")) },
			workertest.Result{Later: time.Hour, Released: true},
			"not yet",
		},
		"unfit": {
			workertest.Task{},
			func(context.Context, *worker.Round) error { return worker.Unfit(errors.New("no GPU")) },
			workertest.Result{Released: true},
			"no GPU",
		},
		"a deleted checkpoint": {
			workertest.Task{Checkpoint: []byte("old")},
			func(_ context.Context, r *worker.Round) error { return r.SetCheckpoint(nil) },
			workertest.Result{Exit: "0", Checkpoint: []byte{}},
			"",
		},
		"a result that is too large": {
			workertest.Task{},
			func(_ context.Context, r *worker.Round) error { return r.SetResult(strings.Repeat("x", 2<<20)) },
			workertest.Result{Error: "result.json: 2097154 bytes, more than 1048576"},
			"result.json: ",
		},
		"the context ends": {
			workertest.Task{Timeout: 1},
			func(ctx context.Context, r *worker.Round) error {
				<-ctx.Done()
				if _, ok := ctx.Deadline(); ok || !errors.Is(ctx.Err(), context.Canceled) || r.Deadline.IsZero() {
					panic("the context ends in another way than in a worker")
				}
				return errors.Join(ctx.Err(), r.SetResult(1))
			},
			workertest.Result{TimedOut: true},
			"the task's timeout is over",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := workertest.Run(t.Context(), c.h, c.task)
			err := ""
			if got.Err != nil {
				err = got.Err.Error()
			}
			got.Err = nil
			expect.Equal(t, got, c.want, c.err)
			expect.True(t, strings.HasPrefix(err, c.err), "got", got, "error", err, "want", c.want, c.err)
			expect.Equal(t, err == "", c.err == "", c.err)
		})
	}
}

func TestRunOfAPanic(t *testing.T) {
	got := workertest.Run(t.Context(), func(context.Context, *worker.Round) error { panic("oh no") }, workertest.Task{})
	expect.Equal(t, got.Exit, "2")
	expect.Fails(t, got.Err, "")
	expect.True(t, strings.HasPrefix(got.Error, "panic: oh no\n\ngoroutine "), got)
}

func TestErrKeepsTheHandlersError(t *testing.T) {
	cause := errors.New("cause")
	got := workertest.Run(t.Context(), func(context.Context, *worker.Round) error { return fmt.Errorf("step: %w", cause) }, workertest.Task{})
	expect.FailsWith(t, got.Err, cause)
}
