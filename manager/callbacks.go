package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
)

// Callbacks say what [Manager.Run] does with tasks that are done (docs/manager.md,
// "Callbacks"). All of them are optional, and are called one after the other.
//
// A task whose callback returns nil is archived, together with what the callback opened. One
// whose callback returns an error or panics stays where it is, and its callback is called
// again after a pause that grows from 1 s to 5 min, without holding up the others; after
// [ErrNotYet] it is in the next round. So a callback runs at least once for its task, and has
// to bear being run again.
type Callbacks struct {
	// Groups are those that Run looks after; none: all tasks there are.
	Groups []string

	// Without its callback, a task is archived; one that did not succeed leaves a warning.
	Succeeded func(ctx context.Context, t *Task) error
	Failed    func(ctx context.Context, t *Task) error
	TimedOut  func(ctx context.Context, t *Task) error
	Expired   func(ctx context.Context, t *Task) error // also what was cancelled: see tdf.Task.Outcome

	// EndOfRound is called after each round; an error ends Run with that error.
	EndOfRound func(ctx context.Context, s Summary) error

	// Stop is called after that; true ends Run. Without it, Run ends as soon as all tasks
	// that it looks after are archived.
	Stop func(ctx context.Context, s Summary) bool
}

// ErrNotYet is what a callback returns when its task has to wait for others. The task stays
// where it is, and its callback is called again in the next round: at once when others were
// archived, else when a task is done or a round_duration has passed.
var ErrNotYet = errors.New("not yet")

// A Task is one that is done, as its callback gets it.
type Task struct {
	*tdf.Task
	followUps []tdf.Properties
}

// Open has tasks opened in the same atomic step that archives t: both happen or neither does,
// whatever becomes of the manager. If the callback returns an error, nothing is opened. A
// definition that makes no sense, and more than [MaxFollowUps], count as such an error.
func (t *Task) Open(definitions ...tdf.Properties) {
	t.followUps = append(t.followUps, definitions...)
}

// Bounds of what one callback opens, so that the atomic step does not keep Redis from others.
const (
	MaxFollowUps     = 1000
	maxFollowUpBytes = 4 << 20
)

func (t *Task) checkFollowUps() error {
	if n := len(t.followUps); n > MaxFollowUps {
		return fmt.Errorf("the callback opens %d tasks; at most %d can be opened together with the archiving: let some of them open the others", n, MaxFollowUps)
	}
	bytes := 0
	for i := range t.followUps {
		d := &t.followUps[i]
		bytes += len(d.Source) + len(d.Input) + len(d.Meta)
	}
	if bytes > maxFollowUpBytes {
		return fmt.Errorf("the sources, inputs and metas of the tasks that the callback opens have %d bytes; at most %d can be written together with the archiving", bytes, maxFollowUpBytes)
	}
	if err := validate(t.followUps); err != nil {
		return fmt.Errorf("a task that the callback opens makes no sense: %w", err)
	}
	return nil
}

// of returns the callback for a state.
func (c *Callbacks) of(s tdf.State) func(context.Context, *Task) error {
	return map[tdf.State]func(context.Context, *Task) error{
		tdf.Succeeded: c.Succeeded, tdf.Failed: c.Failed, tdf.TimedOut: c.TimedOut, tdf.Expired: c.Expired,
	}[s]
}

// scopeOf returns the groups, each once.
func scopeOf(groups []string) ([]string, error) {
	if slices.Contains(groups, "") {
		return nil, errors.New(`a group is named ""; name no group at all to mean all tasks`)
	}
	return slices.Compact(slices.Sorted(slices.Values(groups))), nil
}
