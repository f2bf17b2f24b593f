package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
)

// Callbacks are the functions that [Manager.Run] calls for finished tasks (docs/manager.md, "Callbacks"). All fields are
// optional. Run calls one callback at a time.
//
// If a callback returns nil, Run archives the callback's task. If a callback returns an error or panics, Run keeps the
// task and calls the callback again after a pause. The pauses are 1 s, 2 s, 4 s and so on, up to 5 min. Meanwhile, Run
// handles other tasks. A callback may also run again after a crash of the manager. So a callback must be safe to run
// several times for the same task.
type Callbacks struct {
	// Groups are the groups of the tasks that Run handles. If Groups is empty, Run handles all tasks.
	Groups []string

	// If the callback for a task's state is nil, Run archives the task. If the task did not succeed, Run also logs a
	// warning.
	Succeeded func(ctx context.Context, t *Finished) error
	Failed    func(ctx context.Context, t *Finished) error
	TimedOut  func(ctx context.Context, t *Finished) error
	Expired   func(ctx context.Context, t *Finished) error // also called for cancelled tasks, which have the Outcome "cancelled"

	// EndOfRound is called after each round. If it returns an error, Run ends with that error.
	EndOfRound func(ctx context.Context, s Summary) error

	// Stop is called after EndOfRound. If it returns true, Run ends. If Stop is nil, Run ends when all tasks of Groups are
	// archived.
	Stop func(ctx context.Context, s Summary) bool
}

// ErrNotYet is the error that a callback returns if its task must wait for other tasks. Run keeps the task, and calls
// the callback again in the next round. If the present round archives tasks, the next round starts at once. Otherwise
// the next round starts when a task finishes, or after a RoundDuration.
var ErrNotYet = errors.New("not yet")

// A Finished is a finished task, which Run passes to a callback.
type Finished struct {
	*Task
	manager  *Manager
	followUp []Definition
	opens    []tdf.Properties // the follow-ups with their defaults
}

// Open opens tasks when t is archived, in the same atomic step. If the callback returns an error, no task is opened. If
// a definition is invalid, or if there are more than [MaxFollowUps] tasks, this counts as an error of the callback.
func (t *Finished) Open(definitions ...Definition) { t.followUp = append(t.followUp, definitions...) }

// MaxFollowUps is the maximum number of tasks that one callback can open. Their sources, inputs and metas together can
// have at most 4 MiB.
const MaxFollowUps = 1000

const maxFollowUpBytes = 4 << 20

// prepare checks the follow-ups, and sets the properties for which their definitions have no value.
func (t *Finished) prepare() error {
	if n := len(t.followUp); n > MaxFollowUps {
		return fmt.Errorf("open tasks from the callback: %d tasks are too many for one step, at most %d are possible; let some of the tasks open the others", n, MaxFollowUps)
	}
	t.opens = t.manager.properties(t.followUp)
	bytes := 0
	for i := range t.opens {
		bytes += len(t.opens[i].Source) + len(t.opens[i].Input) + len(t.opens[i].Meta)
	}
	if bytes > maxFollowUpBytes {
		return fmt.Errorf("open tasks from the callback: their sources, inputs and metas have %d bytes in total, at most %d are possible", bytes, maxFollowUpBytes)
	}
	if err := tdf.ValidateAll(t.opens); err != nil {
		return fmt.Errorf("open tasks from the callback: %w", err)
	}
	return nil
}

// forState returns the callback for tasks in state s, or nil if this callback is not set.
func (c *Callbacks) forState(s tdf.State) func(context.Context, *Finished) error {
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
		return nil, errors.New(`the name of a group is ""; to select all tasks, pass no group`)
	}
	return slices.Compact(slices.Sorted(slices.Values(groups))), nil
}
