package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// An Action is a change of tasks that [Manager.Do] makes. The methods for single actions, such as [Manager.Retry], call
// Do.
type Action struct {
	Verb rules.Verb // VerbReopen, VerbChange, VerbRelease, VerbCancel, VerbArchive, VerbRemove or VerbRequire
	// the state of a task must be one of these; if empty, each state that the verb allows is possible
	From      []tdf.State
	Changes   tdf.Changes // the new properties, for VerbReopen and VerbChange
	Elsewhere bool        // for VerbRelease: the current worker of a task cannot claim the task again

	// Each returns the new properties of a task instead of Changes, for example from its Input and Meta. If it fails, the
	// action skips the task. Nil means that all tasks get the Changes.
	Each func(*task.Task) (tdf.Changes, error)
}

const (
	tasksAtOnce = 500
	// how often Do tries an action: after a conflict with another Move, the action may still be possible
	tries = 5
)

// Do applies an action to each task separately. If Do fails, the result covers the tasks that were handled before the
// error.
func (m *Manager) Do(ctx context.Context, action Action, refs ...Ref) (Result, error) {
	decide, err := action.decider()
	if err != nil {
		return Result{}, err
	}
	h := hand{m: m, action: action, decide: decide, rounds: make(map[int64]int, len(refs))}
	var ids []int64
	for _, f := range refs {
		if _, twice := h.rounds[f.ID]; !twice {
			ids = append(ids, f.ID)
		}
		h.rounds[f.ID] = f.Round
	}
	for page := range slices.Chunk(ids, tasksAtOnce) {
		if err := h.do(ctx, page); err != nil {
			return h.result, fmt.Errorf("%s tasks: %w", action.Verb, err)
		}
	}
	return h.result, nil
}

// A hand is the state of one call of Do.
type hand struct {
	m      *Manager
	action Action
	decide func(*task.Task) (rules.Move, error)
	rounds map[int64]int // the rounds of the Refs, by the id of the task
	now    task.Time
	result Result
}

// decider returns a function that decides the Move of one task.
func (a Action) decider() (func(*task.Task) (rules.Move, error), error) {
	switch a.Verb {
	case rules.VerbReopen:
		if a.Changes == (tdf.Changes{}) && a.Each == nil {
			return rules.Reopen, nil
		}
		return a.changing(rules.ReopenWith), nil
	case rules.VerbChange:
		return a.changing(rules.Change), nil
	case rules.VerbRelease:
		return func(t *task.Task) (rules.Move, error) { return rules.Requeue(t, a.Elsewhere) }, nil
	case rules.VerbCancel:
		return rules.Cancel, nil
	case rules.VerbArchive:
		return rules.Archive, nil
	case rules.VerbRemove:
		return rules.Remove, nil
	case rules.VerbRequire:
		return func(t *task.Task) (rules.Move, error) { return rules.Require(t), nil }, nil
	}
	return nil, fmt.Errorf("act on tasks: unknown action %q", a.Verb)
}

// changing returns a function that decides a Move with the new properties of a task.
func (a Action) changing(
	decide func(*task.Task, tdf.Changes) (rules.Move, error),
) func(*task.Task) (rules.Move, error) {
	return func(t *task.Task) (rules.Move, error) {
		if a.Each == nil {
			return decide(t, a.Changes)
		}
		c, err := a.Each(t)
		if err != nil {
			return rules.Move{}, err
		}
		return decide(t, c)
	}
}

func (h *hand) do(ctx context.Context, ids []int64) error {
	for try := 1; len(ids) > 0; try++ {
		seen, err := h.m.in().Store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
		if err != nil {
			return err
		}
		if h.now, err = h.m.in().Store.Now(ctx); err != nil {
			return err
		}
		var units []redisstate.Unit
		for _, s := range seen {
			move, err := h.move(s)
			if err != nil {
				h.result.Skipped = append(h.result.Skipped, err)
				continue
			}
			units = append(units, redisstate.Unit{Moves: []rules.Move{move}})
		}
		outcomes, err := h.m.in().Acts.Do(ctx, units)
		ids = nil
		for i, o := range outcomes {
			switch {
			case o.Err == nil:
				h.result.Done++
			case errors.As(o.Err, new(*tdf.UniqueError)): // another try would not help
				h.result.Skipped = append(h.result.Skipped, o.Err)
			case tdf.CodeOf(o.Err) == tdf.CodeTooManyRequirements:
				h.result.Skipped = append(h.result.Skipped, fmt.Errorf("task %d: %w", units[i].Moves[0].ID, o.Err))
			case try < tries:
				ids = append(ids, units[i].Moves[0].ID)
			default:
				h.result.Skipped = append(h.result.Skipped, o.Err)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *hand) move(s redisstate.Stored) (rules.Move, error) {
	t := s.Task
	if t == nil {
		return rules.Move{}, &tdf.StateError{ID: s.ID, Verb: h.action.Verb, State: task.None}
	}
	round := h.rounds[s.ID]
	if round != AnyRound && round != t.Round || len(h.action.From) > 0 && !slices.Contains(h.action.From, t.State) {
		return rules.Move{}, &tdf.StateError{ID: s.ID, Verb: h.action.Verb, State: t.State, Round: t.Round}
	}
	return h.action.move(t, h.decide, h.now)
}

// moveAt returns the Move of the action for a task, at the time now.
func (a Action) moveAt(t *task.Task, now task.Time) (rules.Move, error) {
	decide, err := a.decider()
	if err != nil {
		return rules.Move{}, err
	}
	return a.move(t, decide, now)
}

func (a Action) move(t *task.Task, decide func(*task.Task) (rules.Move, error), now task.Time) (rules.Move, error) {
	move, err := decide(t)
	if changed := a.Changes.Apply(t.Properties); err == nil && a.Verb == rules.VerbReopen && changed.OpenUntil() <= now {
		err = ErrPast
	}
	var elsewhere *tdf.StateError
	if err != nil && !errors.As(err, &elsewhere) {
		err = fmt.Errorf("%s task %d: %w", a.Verb, t.ID, err)
	}
	return move, err
}

// A Ref names a task and the round in which you saw it. If the task is in another round, an action skips it. [Task.Ref]
// returns a Ref for the current round. [ByIDs] returns Refs for any round.
type Ref struct {
	ID    int64
	Round int // the round in which the task must be, or AnyRound
	// Namespace is set only for a task of several namespaces that work as one (docs/shards.md). A Manager ignores it.
	Namespace string
}

// AnyRound is the Round of a [Ref] that matches the task in any round.
const AnyRound = -1

// Ref returns a Ref to the task in its current round.
func (t *Task) Ref() Ref { return Ref{ID: t.ID, Round: t.Round, Namespace: t.Namespace} }

// ByIDs returns Refs to tasks in any round.
func ByIDs(ids ...int64) []Ref {
	refs := make([]Ref, len(ids))
	for i, id := range ids {
		refs[i] = Ref{ID: id, Round: AnyRound}
	}
	return refs
}

// A Result says how many tasks an action changed, and why it skipped the other tasks. Each task changes in a separate
// step. The log of each changed task names the manager.
type Result struct {
	Done int // the number of changed tasks
	// Skipped contains an error for each task that was skipped. If the task's state or round does not allow the action,
	// the error wraps a *[tdf.StateError]. If the task cannot have the new properties, the error wraps a
	// *[tdf.PropertyError], [tdf.ErrUnchanged] or [ErrPast]. If another task holds the unique key of a retried task, it
	// is a *[tdf.UniqueError].
	Skipped []error
}

// ErrPast is the error if a new or retried task would expire at once, because its EndBefore or ClaimBefore is past by
// Redis's clock. To retry the task, set a later time in Changes.
var ErrPast = managing.ErrPast

// Changes are new values of properties. If a field is nil, its property does not change. The group of a task cannot
// change.
type Changes = tdf.Changes

// Retry runs finished tasks again, including archived tasks. Each task gets the changes and one more round. Of its
// counters, only Reopens changes.
func (m *Manager) Retry(ctx context.Context, changes Changes, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: rules.VerbReopen, Changes: changes}, refs...)
}

// Cancel ends open and running tasks. Their state becomes expired, and their outcome cancelled. Workers end the running
// programs.
func (m *Manager) Cancel(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: rules.VerbCancel}, refs...)
}

// Requeue takes running tasks from their workers. The workers end the programs. The tasks run again, on any worker. A
// requeue counts as a release, not as a failure.
func (m *Manager) Requeue(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: rules.VerbRelease}, refs...)
}

// RequeueElsewhere does the same as Requeue, but the tasks never run again on their current workers.
func (m *Manager) RequeueElsewhere(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: rules.VerbRelease, Elsewhere: true}, refs...)
}

// Archive archives tasks that succeeded, failed, timed out or expired. It calls no callback.
func (m *Manager) Archive(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: rules.VerbArchive}, refs...)
}

// Remove deletes finished tasks from Redis, including their outputs, logs and updates.
func (m *Manager) Remove(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: rules.VerbRemove}, refs...)
}

// Update changes properties of open tasks. If StartAfter does not change, the tasks keep their places in the queue.
func (m *Manager) Update(ctx context.Context, changes Changes, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: rules.VerbChange, Changes: changes}, refs...)
}

// CancelOpen cancels the open tasks of a group, and returns how many tasks it cancelled. It does not cancel running
// tasks. An empty group means all tasks.
func (m *Manager) CancelOpen(ctx context.Context, group string) (int, error) {
	refs, err := m.openRefs(ctx, group)
	if err != nil {
		return 0, fmt.Errorf("cancel open tasks: %w", err)
	}
	result, err := m.Do(ctx, Action{Verb: rules.VerbCancel, From: []tdf.State{tdf.Open}}, refs...)
	return result.Done, err
}

// openRefs returns the open tasks of a group. It reads only their ids.
func (m *Manager) openRefs(ctx context.Context, group string) (refs []Ref, err error) {
	stretch := redisstate.ListQuery{States: []tdf.State{tdf.Open}, Group: group}
	for places, err := range stretch.Pages(ctx, m.in().Store, idsPerPage) {
		if err != nil {
			return nil, err
		}
		for _, id := range redisstate.IDsOf(places) {
			refs = append(refs, Ref{ID: id, Round: AnyRound})
		}
	}
	return refs, nil
}
