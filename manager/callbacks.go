package manager

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Callback handles a finished task.
type Callback func(ctx context.Context, t *Finished) error

// Callbacks are the functions that [Manager.Run] calls for finished tasks (docs/manager.md, "Callbacks"). All fields
// are optional, except that one of Groups and AllGroups must be set.
//
// If a callback returns nil, Run archives the callback's task, at the latest a second later. If a callback returns an
// error or panics, Run keeps the task and calls the callback again after a pause. The pauses are 1 s, 2 s, 4 s and so
// on, up to 5 min. Meanwhile, Run handles other tasks. A callback may also run again after a crash of the manager. So a
// callback must be safe to run several times for the same task.
type Callbacks struct {
	// Groups are the groups of the tasks that Run handles.
	Groups []string

	// AllGroups makes Run handle the tasks of all groups, and those without a group. It leaves out the groups of
	// pipelines, and the groups that the Run of another live manager names, unless Force is set. The Summary counts all
	// tasks of the namespace, also those that are left to others.
	AllGroups, Force bool

	// Skip reports whether Run leaves a task alone, for example because another process waits for it. Run may call it
	// in each round. If it is nil, Run skips no task.
	Skip func(id int64) bool

	// If the callback for a task's state is nil, Run archives the task. For tasks that did not succeed, Run also logs a
	// warning: once for each group and state.
	Succeeded, Failed, TimedOut Callback
	// also called for cancelled tasks, which have the Outcome "cancelled"
	Expired Callback

	// Use are functions that wrap each callback, for example to log or to measure it. The first is the outermost.
	Use []func(next Callback) Callback

	// Concurrency is how many callbacks of each group run at the same time. 0 means one callback at a time, whatever
	// its group. With AllGroups, all tasks count as one group. EndOfRound and Stop may run at the same time, too.
	Concurrency int

	// InOrder makes Run call the callbacks of a group one after the other, in the order in which its tasks were opened:
	// the callback of a task waits until all earlier tasks are archived. InOrder needs Groups.
	InOrder bool

	// Attempts is how often a failing callback is called. After that, its task stays as it is (docs/manager.md,
	// "Callbacks that fail"). 0 means 20, and -1 means any number.
	Attempts int

	// EndOfRound is called after each round. If it returns an error, Run ends with that error.
	EndOfRound func(ctx context.Context, s Summary) error

	// Stop is called after EndOfRound. If it returns true, Run ends. If Stop is nil, Run ends when all tasks of Groups
	// are archived.
	Stop func(ctx context.Context, s Summary) bool
}

// mostConcurrency is the largest number of callbacks of a group that run at the same time.
const mostConcurrency = 1000

func (c *Callbacks) check() error {
	switch {
	case len(c.Groups) == 0 && !c.AllGroups:
		return invalid("no groups; name the groups whose tasks this manager handles in Groups, or set AllGroups")
	case len(c.Groups) > 0 && c.AllGroups:
		return invalid("both Groups and AllGroups are set; set one of them")
	case c.InOrder && c.AllGroups:
		return invalid("InOrder needs Groups, because tasks without a group have no order; set Groups")
	case c.Concurrency < 0 || c.Concurrency > mostConcurrency:
		return invalid("Concurrency is %d; want a number from 0 to %d", c.Concurrency, mostConcurrency)
	case c.Attempts < -1:
		return invalid("Attempts is %d; want -1 or more", c.Attempts)
	}
	return nil
}

// ErrNotYet is the error that a callback returns if its task must wait for other tasks. Run keeps the task, and calls
// the callback again in the next round. If the present round archives tasks, the next round starts at once. Otherwise
// the next round starts when a task finishes, or after a RoundDuration. If no other task can finish any more, Run logs
// a warning with the error of the callback, which may wrap ErrNotYet and say what the task waits for.
var ErrNotYet = task.NewError(tdf.CodeUnavailable, "not yet")

// A Finished is a finished task, which Run passes to a callback (docs/manager.md, "Callbacks").
type Finished struct {
	*Task
	// Step is the step in which Run archives the task. The callback can add to it: for example, t.Open opens tasks when
	// t is archived. If the callback returns an error, or if Redis refuses the step, nothing of it happens. A refused
	// step counts as an error of the callback.
	Step

	unit redisstate.Unit // the step, after the callback has returned nil
}

// callback returns the callback for tasks in state s with what wraps it, or nil if this callback is not set.
func (c *Callbacks) callback(s tdf.State) Callback {
	f := c.forState(s)
	if f == nil {
		return nil
	}
	for _, wrap := range slices.Backward(c.Use) {
		f = wrap(f)
	}
	return f
}

func (c *Callbacks) forState(s tdf.State) Callback {
	switch s {
	case tdf.Succeeded:
		return c.Succeeded
	case tdf.Failed:
		return c.Failed
	case tdf.TimedOut:
		return c.TimedOut
	default:
		return c.Expired
	}
}

// scopeOf returns the groups without duplicates. It returns an error if the name of a group is empty.
func scopeOf(groups []string) ([]string, error) {
	if slices.Contains(groups, "") {
		return nil, invalid(`the name of a group is ""; to select all tasks, pass no group`)
	}
	return slices.Compact(slices.Sorted(slices.Values(groups))), nil
}

// A Summary is the result of one round of Run.
type Summary struct {
	Round    int        // the number of the round in this call of Run; the first is 1
	Counts   tdf.Counts // counts the tasks of Callbacks.Groups at one moment after the round
	Archived int        // the number of tasks that the round archived
	Opened   int        // the number of tasks that the round opened
	Waiting  int        // the number of tasks that wait for another call of their callbacks
	Running  int        // the number of callbacks that still run
	GivenUp  int        // the number of tasks whose callbacks have failed for good
}

// Done reports whether all tasks are archived.
func (s Summary) Done() bool { return s.Counts.Unfinished() == 0 && s.Counts.Waiting() == 0 }

// String returns one line, such as "3/10 done, 7 open, 3 archived". A task is done when it is finished.
func (s Summary) String() string {
	line := fmt.Sprintf("%d/%d done", s.Counts.Finished(), s.Counts.Total())
	for _, state := range task.States {
		if n := s.Counts[state]; n > 0 {
			line += fmt.Sprintf(", %d %s", n, strings.ReplaceAll(string(state), "_", " "))
		}
	}
	return line
}

// PrintSummary writes a table with the number of tasks in each state. It counts the tasks of the given groups, or all
// tasks if no group is given.
func (m *Manager) PrintSummary(ctx context.Context, w io.Writer, groups ...string) error {
	counts, err := m.Counts(ctx, groups...)
	if err != nil {
		return err
	}
	var table strings.Builder
	for _, state := range task.States {
		fmt.Fprintf(&table, "%-9s %12d\n", state, counts[state])
	}
	fmt.Fprintf(&table, "%-9s %12d\n", "total", counts.Total())
	_, err = io.WriteString(w, table.String())
	return err
}
