package managertest

import (
	"io"
	"log/slog"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/internal/hooks"
)

// T is what is used of a *testing.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Output() io.Writer
}

// A Tester has a manager, whose tasks it runs.
type Tester struct {
	Manager *manager.Manager
	world   *world
	options manager.Options
}

// New returns a tester whose manager has the default configuration, and logs to the test.
func New(t T) *Tester {
	t.Helper()
	return NewWith(t, manager.Options{})
}

// NewWith is New with options. Options.Redis is not used. The default namespace is "managertest".
func NewWith(t T, o manager.Options) *Tester {
	t.Helper()
	if o.Namespace == "" {
		o.Namespace = "managertest"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	x := &Tester{world: newWorld(t), options: o}
	x.Manager = x.Another()
	return x
}

// Another returns one more manager of the same tasks: one that starts anew, or runs beside the first.
func (x *Tester) Another() *manager.Manager {
	s := store{x.world}
	m, err := hooks.New(hooks.Setup{Store: s, Wait: s.Wait}, x.options)
	if err != nil {
		x.world.t.Errorf("managertest: %v", err)
	}
	return m.(*manager.Manager)
}

// Program says what happens when a task's program of that name runs. A task of a program of
// which nothing was said fails the test.
func (x *Tester) Program(name string, run func(Run) Result) {
	x.world.mu.Lock()
	defer x.world.mu.Unlock()
	x.world.programs[name] = run
}

// A Run is one round of a task that begins.
type Run struct {
	Task  *tdf.Task
	Args  []string // what run.sh gets: the input, split into words
	Round int      // the first is 0
}

// A Result is what becomes of a run. The zero Result is a program that ends at once, prints
// nothing and has exit status 0.
type Result struct {
	Output string // what it prints to stdout
	Error  string // what it prints to stderr
	Exit   int    // its exit status, from 0 to 255

	JSON       string   // what it leaves in result.json, as [tdf.Task.LastResult] returns it; "" for none
	Checkpoint string   // what it leaves for the task's next round, as [tdf.Task.Checkpoint]; "": what is there stays
	Updates    []string // lines that it reports, all at its beginning, as [manager.Manager.Updates] returns them

	Seconds tdf.Seconds // how long it runs; tdf.Forever: until it times out or expires
	Lost    bool        // its worker is never heard of again: lost after a lease of 30 s, or timed out before
}

// Tasks returns all tasks that there are, by id.
func (x *Tester) Tasks() []*manager.Task {
	x.world.mu.Lock()
	defer x.world.mu.Unlock()
	var tasks []*manager.Task
	for _, id := range x.world.ids() {
		tasks = append(tasks, friend.ViewOf(x.world.task(id), true).(*manager.Task))
	}
	return tasks
}

// In returns the tasks that are in one state, by id.
func (x *Tester) In(s tdf.State) []*manager.Task {
	return slices.DeleteFunc(x.Tasks(), func(t *manager.Task) bool { return t.State != s })
}

// Now returns the time by the tester's clock.
func (x *Tester) Now() tdf.Time {
	x.world.mu.Lock()
	defer x.world.mu.Unlock()
	return x.world.now
}
