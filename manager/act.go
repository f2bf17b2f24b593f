package manager

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Ref names a task and the round in which you saw it. If the task is in another round, an action skips it. [Task.Ref]
// returns a Ref for the current round. [ByIDs] returns Refs for any round.
type Ref struct {
	ID    int64
	Round int // the round in which the task must be, or AnyRound
}

// AnyRound is the Round of a [Ref] that matches the task in any round.
const AnyRound = -1

// Ref returns a Ref to the task in its current round.
func (t *Task) Ref() Ref { return Ref{ID: t.ID, Round: t.Round} }

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
	// *[tdf.PropertyError], [tdf.ErrUnchanged] or [ErrPast]. If another task holds the unique key of a retried task, it is a
	// *[tdf.UniqueError].
	Skipped []error
}

// ErrPast is the error if a retried task would expire at once, because its EndBefore is past by Redis's clock. To retry
// the task, set a later EndBefore in Changes.
var ErrPast = tdf.NewError(tdf.CodeConflict, "its end_before is past, so the task would expire at once")

// Changes are new values of properties. If a field is nil, its property does not change. The group of a task cannot change.
type Changes = tdf.Changes

// Retry runs finished tasks again, including archived tasks. Each task gets the changes and one more round. Of its
// counters, only Reopens changes.
func (m *Manager) Retry(ctx context.Context, changes Changes, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: tdf.VerbReopen, Changes: changes}, refs...)
}

// Cancel ends open and running tasks. Their state becomes expired, and their outcome cancelled. Workers end the running
// programs.
func (m *Manager) Cancel(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: tdf.VerbCancel}, refs...)
}

// Requeue takes running tasks from their workers. The workers end the programs. The tasks run again, on any worker. A
// requeue counts as a release, not as a failure.
func (m *Manager) Requeue(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: tdf.VerbRelease}, refs...)
}

// RequeueElsewhere does the same as Requeue, but the tasks never run again on their current workers.
func (m *Manager) RequeueElsewhere(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: tdf.VerbRelease, Elsewhere: true}, refs...)
}

// Archive archives tasks that succeeded, failed, timed out or expired. It calls no callback.
func (m *Manager) Archive(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: tdf.VerbArchive}, refs...)
}

// Remove deletes finished tasks from Redis, including their outputs, logs and updates.
func (m *Manager) Remove(ctx context.Context, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: tdf.VerbRemove}, refs...)
}

// Update changes properties of open tasks. If StartAfter does not change, the tasks keep their places in the queue.
func (m *Manager) Update(ctx context.Context, changes Changes, refs ...Ref) (Result, error) {
	return m.Do(ctx, Action{Verb: tdf.VerbChange, Changes: changes}, refs...)
}

// CancelOpen cancels the open tasks of a group, and returns how many tasks it cancelled. It does not cancel running
// tasks. An empty group means all tasks.
func (m *Manager) CancelOpen(ctx context.Context, group string) (int, error) {
	refs, err := m.openRefs(ctx, group)
	if err != nil {
		return 0, fmt.Errorf("cancel open tasks: %w", err)
	}
	result, err := m.Do(ctx, Action{Verb: tdf.VerbCancel, From: []tdf.State{tdf.Open}}, refs...)
	return result.Done, err
}

// openRefs returns the open tasks of a group. It reads only their ids.
func (m *Manager) openRefs(ctx context.Context, group string) (refs []Ref, err error) {
	stretch := redisstate.ListQuery{States: []tdf.State{tdf.Open}, Group: group}
	for places, err := range stretch.Pages(ctx, m.store, idsPerPage) {
		if err != nil {
			return nil, err
		}
		for _, id := range redisstate.IDsOf(places) {
			refs = append(refs, Ref{ID: id, Round: AnyRound})
		}
	}
	return refs, nil
}
