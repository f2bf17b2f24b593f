package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

const source = "rsync:/programs/sum/run.sh"

// runSum computes the same result as run.sh.
func runSum(r managertest.Run) managertest.Result {
	var sum int64
	for _, arg := range r.Args {
		first, last, found := strings.Cut(arg, "..")
		if !found {
			last = first
		}
		from, err1 := strconv.ParseInt(first, 10, 64)
		to, err2 := strconv.ParseInt(last, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return managertest.Result{Error: err.Error()}
		}
		for n := from; n <= to; n++ {
			sum += n
		}
	}
	// The durations differ, so that the tasks do not finish in the order in which they were opened.
	return managertest.Result{Output: fmt.Sprintln(sum), Duration: time.Duration(r.Task.ID*7%5) * time.Second}
}

func mustPlan(t testing.TB, from, to, bucket int64) *plan {
	t.Helper()
	p := expect.Result(newPlan(from, to, bucket)).Value(t)
	return p
}

func TestSum(t *testing.T) {
	for _, c := range []struct{ from, to, bucket, want int64 }{
		{1, 1000, 10, 500500},
		{1, 700, 7, 245350},
		{1, 1, 2, 1},
		{-5, 5, 2, 0},
		{-100, -1, 3, -5050},
		{3, 10, 8, 52},
		{1, 9, 2, 45},
	} {
		t.Run(fmt.Sprintf("%d..%d by %d", c.from, c.to, c.bucket), func(t *testing.T) {
			tm := managertest.New(t)
			tm.Program("sum", runSum)
			got, err := newSum(tm.Manager, mustPlan(t, c.from, c.to, c.bucket), source, "g").compute(t.Context())
			expect.Equal(t, got, c.want)
			expect.NoError(t, err, c.want)
			expect.Equal(t, len(tm.Tasks())-len(tm.In(tdf.Archived)), 0, "tasks are not archived")
		})
	}
}

func TestEachTaskIsOpenedOnce(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("sum", runSum)
	p := mustPlan(t, 1, 100, 3)
	expect.Result(newSum(tm.Manager, p, source, "g").compute(t.Context())).OK(t)
	checkEachOnce(t, tm, p)
}

func checkEachOnce(t *testing.T, tm *managertest.Tester, p *plan) {
	t.Helper()
	seen := map[place]int{}
	for _, task := range tm.Tasks() {
		seen[placeOf(task)]++
	}
	for level, width := range p.widths {
		for i := range width {
			expect.Equal(t, seen[place{level, i}], 1, "level", level, "index", i, "tasks")
		}
	}
}

var errKilled = errors.New("killed")

// If a manager is killed in any round, a new manager continues without the data in the killed manager's memory.
func TestInterrupted(t *testing.T) {
	p := mustPlan(t, 1, 40, 4)
	for rounds := 1; ; rounds++ {
		tm := managertest.New(t)
		tm.Program("sum", runSum)
		ended := interrupt(t, tm, p, rounds)
		got, err := newSum(tm.Another(), p, source, "g").compute(t.Context())
		expect.MustEqual(t, got, 820, "killed after", rounds)
		expect.NoError(t, err, "killed after", rounds)
		checkEachOnce(t, tm, p)
		if ended {
			return
		}
	}
}

// interrupt runs a sum until the given number of rounds of the manager is over, and reports whether the sum was
// complete by then.
func interrupt(t *testing.T, tm *managertest.Tester, p *plan, rounds int) (ended bool) {
	t.Helper()
	s := newSum(tm.Manager, p, source, "g")
	expect.NoError(t, s.begin(t.Context()))
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		Groups:    []string{"g"},
		Succeeded: s.succeeded,
		EndOfRound: func(_ context.Context, r manager.Summary) error {
			if r.Round == rounds {
				return errKilled
			}
			return nil
		},
	})
	if err != nil {
		expect.FailsWith(t, err, errKilled)
	}
	return err == nil
}

func TestInterruptedOpening(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("sum", runSum)
	p := mustPlan(t, 1, 100, 5)
	half := newSum(tm.Manager, p, source, "g")
	for i := range p.widths[0] / 2 {
		expect.Result(tm.Manager.Open(t.Context(), half.task(place{0, i}, p.numbers(i)))).OK(t)
	}
	got, err := newSum(tm.Manager, p, source, "g").compute(t.Context())
	expect.Equal(t, got, 5050)
	expect.NoError(t, err)
	checkEachOnce(t, tm, p)
}

func TestTwoManagersAtOnce(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("sum", runSum)
	p := mustPlan(t, 1, 300, 6)
	var wg sync.WaitGroup
	for range 3 {
		s := newSum(tm.Another(), p, source, "g")
		wg.Go(func() {
			expect.Result(s.compute(t.Context())).Is(t, 45150)
		})
	}
	wg.Wait()
}

func TestSameRunAgain(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("sum", runSum)
	p := mustPlan(t, 1, 100, 5)
	for range 2 {
		expect.Result(newSum(tm.Another(), p, source, "g").compute(t.Context())).Is(t, 5050)
	}
	checkEachOnce(t, tm, p)
}

func TestNoSum(t *testing.T) {
	for name, c := range map[string]struct {
		result managertest.Result
		want   string
	}{
		"fails":        {managertest.Result{Error: "fetching rsync:/x/run.sh: no such file"}, "failed: fetching rsync:/x/run.sh: no such file"},
		"prints words": {managertest.Result{Output: "about ten\n"}, `the output "about ten\n" is not a number`},
		"is lost":      {managertest.Result{Lost: true}, "4 times"},
	} {
		t.Run(name, func(t *testing.T) {
			tm := managertest.New(t)
			tm.Program("sum", func(r managertest.Run) managertest.Result {
				if r.Args[0] == "11..15" {
					return c.result
				}
				return runSum(r)
			})
			_, err := newSum(tm.Manager, mustPlan(t, 1, 100, 5), source, "g").compute(t.Context())
			expect.Fails(t, err, c.want)
			expect.Contains(t, err.Error(), "11..15", c.want)
			expect.Equal(t, len(tm.Tasks())-len(tm.In(tdf.Archived)), 0, "tasks are not archived")
		})
	}
}
