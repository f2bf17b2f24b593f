package managertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
	"github.com/tdf-framework/tdf/worker"
)

const double = tdf.Kind[int, int]("double")

// A handler's result, output, checkpoint, updates and new tasks become those of the round.
func TestHandle(t *testing.T) {
	tm := managertest.New(t)
	tm.Handle(string(double), worker.ForKind(double, func(_ context.Context, r *worker.Round, n int) (int, error) {
		fmt.Fprint(r.Stdout, "doubled")
		r.Update("half")
		if n > 1 {
			return 2 * n, nil
		}
		next := expect.Result(double.Define(7)).Value(t)
		return 2 * n, errors.Join(r.SetCheckpoint([]byte("c")), r.Open(next))
	}))
	one := expect.Result(double.Define(1)).Value(t)
	expect.Result(tm.Manager.Open(t.Context(), one)).OK(t)
	tm.Advance(0)
	tasks := tm.In(tdf.Succeeded)
	expect.MustLen(t, tasks, 2)
	expect.Equal(t, tasks[0].Result()+" "+tasks[1].Result(), "2 14")
	expect.Equal(t, tasks[0].Output(), "doubled")
	expect.Equal(t, string(tasks[0].Checkpoint), "c")
}

// A handler can put its task off, fail it for good, and say that a worker cannot run it.
func TestHandlersThatDoNotSucceed(t *testing.T) {
	for want, c := range map[string]struct {
		err   error
		state tdf.State
		runs  int
	}{
		"later":           {worker.Later(time.Hour, errors.New("later")), tdf.Open, 3},
		"no such host":    {worker.Permanent(errors.New("no such host")), tdf.Failed, 1},
		"no licence here": {worker.Unfit(errors.New("no licence here")), tdf.Failed, 5},
		"try again":       {errors.New("try again"), tdf.Failed, 2},
	} {
		tm := managertest.New(t)
		runs := 0
		tm.Handle("p", func(context.Context, *worker.Round) error {
			runs++
			return c.err
		})
		expect.Result(tm.Manager.Open(t.Context(), manager.Definition{Program: "p", MaxFails: new(1)})).OK(t)
		tm.Advance(2*time.Hour + time.Minute)
		expect.Equal(t, tm.Tasks()[0].State, c.state, want)
		expect.Equal(t, runs, c.runs, want)
		if c.state == tdf.Failed {
			expect.Contains(t, tm.Tasks()[0].Stderr(), want)
		}
	}
}

// Advance lets programs end and times pass. Then the clock stands at the end of the span.
func TestAdvance(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{Duration: 90 * time.Minute} })
	begin := tm.Now()
	d := manager.Definition{Program: "p", StartAfter: begin.Add(time.Hour)}
	expect.Result(tm.Manager.Open(t.Context(), d)).OK(t)
	for _, want := range []tdf.State{tdf.Open, tdf.Running, tdf.Running, tdf.Succeeded} {
		tm.Advance(40 * time.Minute)
		expect.Len(t, tm.In(want), 1, want)
	}
	expect.Equal(t, tm.Now().Sub(begin).Truncate(time.Second).Minutes(), 160.0)
}
