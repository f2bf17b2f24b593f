package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

// Each number is squared by a task of its own; what they print is added up.
func Example() {
	m, done := load()
	defer done()
	ctx := context.Background()

	var tasks []tdf.Properties
	for n := 1; n <= 4; n++ {
		d := m.Define("square", "https://example.org/square.tar.gz", fmt.Sprint(n))
		d.Timeout = 30 // seconds
		d.MaxFails = 2
		tasks = append(tasks, d)
	}
	if _, err := m.Open(ctx, tasks...); err != nil {
		fmt.Println(err)
		return
	}

	sum := 0
	err := m.Run(ctx, manager.Callbacks{
		Succeeded: func(_ context.Context, t *manager.Task) error {
			var n int
			if _, err := fmt.Sscan(t.LastOutput(), &n); err != nil {
				return err
			}
			sum += n
			return nil
		},
		Failed: func(_ context.Context, t *manager.Task) error {
			fmt.Printf("task %d failed: %s\n", t.ID, t.LastError())
			return nil
		},
	})
	fmt.Println(sum, err)
	// Output: 30 <nil>
}

// A task that a callback opens is opened in the same atomic step that archives the callback's.
func ExampleTask_Open() {
	m, done := load()
	defer done()
	ctx := context.Background()
	if _, err := m.Open(ctx, m.Define("square", "https://example.org/square.tar.gz", "3")); err != nil {
		fmt.Println(err)
		return
	}
	err := m.Run(ctx, manager.Callbacks{
		Succeeded: func(_ context.Context, t *manager.Task) error {
			result := strings.TrimSpace(t.LastOutput())
			fmt.Println(t.Input, "squared is", result)
			if len(result) < 4 {
				t.Open(m.Define(t.Program, t.Source, result))
			}
			return nil
		},
	})
	fmt.Println(err)
	// Output:
	// 3 squared is 9
	// 9 squared is 81
	// 81 squared is 6561
	// <nil>
}

// A manager may look after some groups only, and stop when it likes.
func ExampleManager_Run_groups() {
	m, done := load()
	defer done()
	ctx := context.Background()
	for _, group := range []string{"small", "small", "large"} {
		d := m.Define("square", "https://example.org/square.tar.gz", "7")
		d.Group = group
		if _, err := m.Open(ctx, d); err != nil {
			fmt.Println(err)
			return
		}
	}
	err := m.Run(ctx, manager.Callbacks{
		Groups: []string{"small"},
		EndOfRound: func(_ context.Context, s manager.Summary) error {
			if s.Counts[tdf.Failed] > 0 {
				return errors.New("one has failed, that is enough")
			}
			return nil
		},
		Stop: func(_ context.Context, s manager.Summary) bool { return s.Counts[tdf.Archived] >= 2 },
	})
	fmt.Println(err)
	if err := m.PrintSummary(ctx, os.Stdout, "small"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// open                 0
	// running              0
	// executed             0
	// succeeded            0
	// failed               0
	// timed_out            0
	// expired              0
	// archived             2
	// total                2
}

// An archived task is opened again by hand, and a task that is not needed is given up.
func ExampleManager_Reopen() {
	m, done := load()
	defer done()
	ctx := context.Background()
	ids, err := m.Open(ctx, m.Define("square", "https://example.org/square.tar.gz", "2"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = m.Run(ctx, manager.Callbacks{})
	fmt.Println(m.Reopen(ctx, ids...))
	fmt.Println(m.Cancel(ctx, ids[0], 99))
	t, _ := m.Task(ctx, ids[0])
	fmt.Println(t.State, t.Outcome, t.Round)
	// Output:
	// <nil>
	// cancel task 99: there is no such task
	// expired cancelled 1
}

// load stands for manager.Load(ctx, "manager.cfg") and the manager's Close, so that these
// examples need no workers.
func load() (m *manager.Manager, done func()) {
	var t panics
	tm := managertest.New(&t)
	tm.Program("square", func(r managertest.Run) managertest.Result {
		var n int
		if _, err := fmt.Sscan(r.Args[0], &n); err != nil {
			return managertest.Result{Error: err.Error()}
		}
		return managertest.Result{Output: fmt.Sprintln(n * n), Duration: time.Second}
	})
	return tm.Manager, t.end
}

// panics is a test that ends with its first failure.
type panics struct{ cleanups []func() }

func (*panics) Helper()                      {}
func (*panics) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (*panics) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (p *panics) Cleanup(f func())           { p.cleanups = append(p.cleanups, f) }
func (*panics) Output() io.Writer            { return io.Discard }

func (p *panics) end() {
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}
