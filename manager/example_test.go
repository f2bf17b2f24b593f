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

// Each task squares a number, and the callback adds up the outputs.
func Example() {
	m, done := load()
	defer done()
	ctx := context.Background()

	var tasks []manager.Definition
	for n := 1; n <= 4; n++ {
		tasks = append(tasks, manager.Definition{
			Program: "square", Source: "https://example.org/square.tar.gz", Input: fmt.Sprint(n),
			Timeout: 30 * time.Second, MaxFails: new(2),
		})
	}
	if _, err := m.Open(ctx, tasks...); err != nil {
		fmt.Println(err)
		return
	}

	sum := 0
	err := m.Run(ctx, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, t *manager.Finished) error {
			var n int
			if _, err := fmt.Sscan(t.Output(), &n); err != nil {
				return err
			}
			sum += n
			return nil
		},
		Failed: func(_ context.Context, t *manager.Finished) error {
			fmt.Printf("task %d failed: %s\n", t.ID, t.Stderr())
			return nil
		},
	})
	fmt.Println(sum, err)
	// Output: 30 <nil>
}

// One atomic step archives the callback's task and opens the next task.
func ExampleFinished_Open() {
	m, done := load()
	defer done()
	ctx := context.Background()
	if _, err := m.Open(ctx, manager.Definition{Program: "square", Source: "https://example.org/square.tar.gz", Input: "3"}); err != nil {
		fmt.Println(err)
		return
	}
	err := m.Run(ctx, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, t *manager.Finished) error {
			result := strings.TrimSpace(t.Output())
			fmt.Println(t.Input, "squared is", result)
			if len(result) < 4 {
				next := t.Definition
				next.Input = result
				t.Open(next)
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

// A manager handles only the tasks of some groups. It can stop Run at any time.
func ExampleManager_Run_groups() {
	m, done := load()
	defer done()
	ctx := context.Background()
	for _, group := range []string{"small", "small", "large"} {
		d := manager.Definition{Program: "square", Source: "https://example.org/square.tar.gz", Input: "7", Group: group}
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

// Retry runs an archived task again. Cancel then cancels the task before it runs.
func ExampleManager_Retry() {
	m, done := load()
	defer done()
	ctx := context.Background()
	tasks, err := m.Open(ctx, manager.Definition{Program: "square", Source: "https://example.org/square.tar.gz", Input: "2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = m.Run(ctx, manager.Callbacks{AllGroups: true})
	task := tasks[0].Ref()
	fmt.Println(m.Retry(ctx, manager.Changes{}, task))
	fmt.Println(m.Cancel(ctx, task))
	fmt.Println(m.Cancel(ctx, manager.ByIDs(task.ID, 99)...))
	t, _ := m.Get(ctx, task.ID)
	fmt.Println(t.State, t.Outcome, t.Round)
	// Output:
	// {1 []} <nil>
	// {0 [cancel task 1: it is open in round 1]} <nil>
	// {1 [cancel task 99: there is no such task]} <nil>
	// expired cancelled 1
}

// load replaces manager.Load("manager.cfg") and the manager's Close, so that these examples need neither Redis nor
// workers.
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

// panics is a managertest.T that panics at the first failure.
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
