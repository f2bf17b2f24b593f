package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
)

// Callbacks say what [Manager.Run] does with finished tasks (docs/manager.md, "Callbacks"). All fields are optional. Run calls one
// callback at a time.
//
// When a callback returns nil, its task is archived. When it returns an error or panics, the task stays, and the callback is called
// again after a pause of 1 s, 2 s, 4 s, up to 5 min. Other tasks do not wait for it. A callback may also run again after a crash of the
// manager. So it must be safe to run several times for the same task.
type Callbacks struct {
	// Groups are the groups of tasks that Run handles. None: all tasks.
	Groups []string

	// Run archives a task without a callback for its state, and logs a warning unless the task succeeded.
	Succeeded func(ctx context.Context, t *Finished) error
	Failed    func(ctx context.Context, t *Finished) error
	TimedOut  func(ctx context.Context, t *Finished) error
	Expired   func(ctx context.Context, t *Finished) error // also cancelled tasks: see Task.Outcome

	// EndOfRound is called after each round. If it returns an error, Run ends with that error.
	EndOfRound func(ctx context.Context, s Summary) error

	// Stop is called after EndOfRound. If it returns true, Run ends. Without Stop, Run ends when all tasks of Groups are archived.
	Stop func(ctx context.Context, s Summary) bool
}

// ErrNotYet is for a callback whose task has to wait for other tasks. The task stays, and its callback is called again in the next
// round. If the previous round archived tasks, the next round starts at once. Otherwise it starts when a task finishes, or after a
// RoundDuration.
var ErrNotYet = errors.New("not yet")

// A Finished is a finished task in its callback.
type Finished struct {
	*Task
	manager  *Manager
	followUp []Definition
	opens    []tdf.Properties // the follow-ups with defaults
}

// Open opens tasks together with the archiving of t, in one atomic step: both happen, or none. If the callback returns an error,
// nothing is opened. An invalid definition, and more than [MaxFollowUps] in one callback, count as an error of the callback.
func (t *Finished) Open(definitions ...Definition) { t.followUp = append(t.followUp, definitions...) }

// MaxFollowUps is how many tasks one callback can open. Their sources, inputs and metas can have 4 MiB.
const MaxFollowUps = 1000

const maxFollowUpBytes = 4 << 20

// prepare checks the follow-ups, and fills in their defaults.
func (t *Finished) prepare() error {
	if n := len(t.followUp); n > MaxFollowUps {
		return fmt.Errorf("open tasks from the callback: %d are too many for one step, at most %d are possible; let some of them open the others", n, MaxFollowUps)
	}
	t.opens = t.manager.properties(t.followUp)
	bytes := 0
	for i := range t.opens {
		bytes += len(t.opens[i].Source) + len(t.opens[i].Input) + len(t.opens[i].Meta)
	}
	if bytes > maxFollowUpBytes {
		return fmt.Errorf("open tasks from the callback: their sources, inputs and metas have %d bytes, at most %d are possible", bytes, maxFollowUpBytes)
	}
	if err := validate(t.opens); err != nil {
		return fmt.Errorf("open tasks from the callback: %w", err)
	}
	return nil
}

// of returns the callback for a state.
func (c *Callbacks) of(s tdf.State) func(context.Context, *Finished) error {
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

// scopeOf returns the groups, each once.
func scopeOf(groups []string) ([]string, error) {
	if slices.Contains(groups, "") {
		return nil, errors.New(`the name of a group is ""; name no group to select all tasks`)
	}
	return slices.Compact(slices.Sorted(slices.Values(groups))), nil
}
