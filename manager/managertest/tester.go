package managertest

import (
	"io"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker"
)

// T lists the methods of *testing.T that a Tester uses.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
	Output() io.Writer
}

// A Tester contains a manager, and runs the manager's tasks.
type Tester struct {
	Manager *manager.Manager
	world   *world
	options manager.Options
}

// New returns a tester whose manager has the default configuration and logs to the test.
func New(t T) *Tester {
	t.Helper()
	return NewWith(t, manager.Options{})
}

// NewWith returns a tester whose manager has the given options. Options.Redis is replaced by an embedded Redis that
// ends with the test. The default namespace is "managertest".
func NewWith(t T, o manager.Options) *Tester {
	t.Helper()
	if o.Namespace == "" {
		o.Namespace = "managertest"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	w := newWorld(t, o.Namespace)
	o.Redis = w.address()
	x := &Tester{world: w, options: o}
	x.Manager = x.Another()
	return x
}

// Another returns another manager for the same tasks. Use it to test a restart, or two managers at once.
func (x *Tester) Another() *manager.Manager {
	return x.manager(x.world.connect(x.options.Namespace))
}

func (x *Tester) manager(store *redisstate.Store) *manager.Manager {
	w := &waiter{world: x.world}
	m, err := manager.New(x.options)
	x.world.check(err)
	of := managing.Of(m)
	of.Store, of.Hooks = store, managing.Hooks{Wait: w.wait, StageFailed: w.stageFailed}
	return m
}

// Program sets the function that replaces the program of this name. The function is called once for each round. If a
// task needs a program for which the test has set no function, the test fails.
func (x *Tester) Program(name string, run func(Run) Result) { x.world.programs.Store(name, run) }

// Handle makes a handler run the tasks of a program, as a worker would. It runs at once, and its round takes no time of
// the test's clock. For the handler of a kind, pass string(kind) and [worker.ForKind].
func (x *Tester) Handle(program string, h worker.Handler) {
	x.Program(program, func(r Run) Result { return handled(x.world.ctx, h, r) })
}

// Advance lets time pass without a manager: workers run tasks, and the server decides.
func (x *Tester) Advance(d time.Duration) { x.world.advance(task.For(d)) }

// A Run is the execution of a program in one round of a task.
type Run struct {
	Task  *manager.Task
	Args  []string // the arguments of run.sh, which are the words of the input
	Round int      // the number of the round; the first is 0
}

// A Result is the end of a run. The zero Result means that the program ends at once, prints nothing and has exit status
// 0.
type Result struct {
	Output string // stdout
	Error  string // stderr
	Exit   int    // exit status, from 0 to 255

	JSON       string   // content of result.json, see [manager.Task.Result]; "" if the program writes no result.json
	Checkpoint string   // checkpoint for the next round, see [manager.Task]; "" keeps the previous checkpoint
	Updates    []string // lines that the program reports when it starts

	Opened    []manager.Definition // tasks that the round opens if it succeeds, as with [worker.Round.Open]
	Permanent bool                 // if the round fails, the task has failed, whatever its limits allow
	Later     time.Duration        // if above 0, the round counts nothing, and the task runs again after this time

	Duration time.Duration // run time; with [Forever], the program runs until the round times out or the task expires
	Lost     bool          // the worker never reports, so the round times out, or it is lost after its lease of 30 s

	unfit string // why the worker cannot run the task, if a handler says so
}

// Forever is the Duration of a program that never ends.
const Forever time.Duration = math.MaxInt64

// Tasks returns all tasks ordered by id, with all their texts.
func (x *Tester) Tasks() []*manager.Task {
	var tasks []*manager.Task
	for _, t := range x.world.tasks() {
		tasks = append(tasks, view(t))
	}
	return tasks
}

// In returns the tasks in one state, ordered by id.
func (x *Tester) In(s tdf.State) []*manager.Task {
	return slices.DeleteFunc(x.Tasks(), func(t *manager.Task) bool { return t.State != s })
}

// Outputs returns the outputs of the tasks of a group, ordered by id. The group of a pipeline's stage is
// "PIPELINE/STAGE".
func (x *Tester) Outputs(group string) []string {
	var outputs []string
	for _, t := range x.Tasks() {
		if t.Group == group {
			outputs = append(outputs, t.Output())
		}
	}
	return outputs
}

func view(t *task.Task) *manager.Task { return manager.TaskOf(t, true) }

// Now returns the time of the test's clock.
func (x *Tester) Now() time.Time {
	now, err := x.world.store.Now(x.world.ctx)
	x.world.check(err)
	return now.Std().UTC()
}
