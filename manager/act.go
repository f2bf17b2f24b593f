package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/acting"
	"github.com/tdf-framework/tdf/internal/stdtime"
)

// A Ref names a task and the round in which you saw it. An action skips the task if the task is in another round. [Task.Ref]
// returns a Ref; [ByIDs] returns Refs for any round.
type Ref struct {
	ID    int64
	Round int // AnyRound: any round
}

// AnyRound is the Round of a [Ref] that names a task in any round.
const AnyRound = acting.AnyRound

// Ref returns the task's id and round.
func (t *Task) Ref() Ref { return Ref{t.ID, t.Round} }

// ByIDs returns Refs to tasks in any round.
func ByIDs(ids ...int64) []Ref {
	refs := make([]Ref, len(ids))
	for i, id := range ids {
		refs[i] = Ref{id, AnyRound}
	}
	return refs
}

// A Result says what an action did. Each task is changed by itself, and its log names the manager.
type Result struct {
	Done int // how many tasks
	// Skipped has an error for each task that was skipped. It wraps a *[tdf.StateError] if the action is not possible in the task's state
	// or the task is in another round, and a *[tdf.PropertyError], [tdf.ErrUnchanged] or [ErrPast] if the changes do not fit.
	Skipped []error
}

// ErrPast is the error of a retry of a task that would expire at once, because its EndBefore is past by Redis's clock. Changes can
// set a later EndBefore.
var ErrPast = acting.ErrPast

// Changes are new values of properties. A nil field leaves its property unchanged. The group of a task never changes.
type Changes struct {
	Program, Source, Input           *string
	StartAfter, EndBefore            *time.Time     // EndBefore: NoEnd() removes the limit
	Timeout                          *time.Duration // NoTimeout removes the limit
	MaxFails, MaxTimeouts, MaxLosses *int
	Meta                             *string
	FailOn                           *tdf.FailOn
}

func (c Changes) changes() tdf.Changes {
	return tdf.Changes{
		Program: c.Program, Source: c.Source, Input: c.Input,
		StartAfter: mapped(c.StartAfter, stdtime.TDF), EndBefore: mapped(c.EndBefore, stdtime.TDF), Timeout: mapped(c.Timeout, stdtime.Seconds),
		MaxFails: c.MaxFails, MaxTimeouts: c.MaxTimeouts, MaxLosses: c.MaxLosses, Meta: c.Meta, FailOn: c.FailOn,
	}
}

func mapped[T, U any](value *T, convert func(T) U) *U {
	if value == nil {
		return nil
	}
	return new(convert(*value))
}

// Retry runs finished tasks again, archived ones included. Each task gets one more round, with the changes. Its counters stay.
func (m *Manager) Retry(ctx context.Context, changes Changes, refs ...Ref) (Result, error) {
	return m.act(ctx, acting.Action{Verb: tdf.VerbReopen, Changes: changes.changes()}, refs)
}

// Cancel ends open and running tasks. Their state is expired, and their outcome cancelled. Workers end the programs that run.
func (m *Manager) Cancel(ctx context.Context, refs ...Ref) (Result, error) {
	return m.act(ctx, acting.Action{Verb: tdf.VerbCancel}, refs)
}

// Requeue takes running tasks from their workers, which end the programs. The tasks run again, on any worker. This counts as a
// release, not as a failure.
func (m *Manager) Requeue(ctx context.Context, refs ...Ref) (Result, error) {
	return m.act(ctx, acting.Action{Verb: tdf.VerbRelease}, refs)
}

// RequeueElsewhere is Requeue, but the tasks never run again on the workers that have them now.
func (m *Manager) RequeueElsewhere(ctx context.Context, refs ...Ref) (Result, error) {
	return m.act(ctx, acting.Action{Verb: tdf.VerbRelease, Elsewhere: true}, refs)
}

// Archive archives tasks that succeeded, failed, timed out or expired, without a callback.
func (m *Manager) Archive(ctx context.Context, refs ...Ref) (Result, error) {
	return m.act(ctx, acting.Action{Verb: tdf.VerbArchive}, refs)
}

// Remove deletes finished tasks from Redis, with their outputs, logs and updates.
func (m *Manager) Remove(ctx context.Context, refs ...Ref) (Result, error) {
	return m.act(ctx, acting.Action{Verb: tdf.VerbRemove}, refs)
}

// Update changes open tasks. They keep their places in the queue, unless StartAfter changes.
func (m *Manager) Update(ctx context.Context, changes Changes, refs ...Ref) (Result, error) {
	return m.act(ctx, acting.Action{Verb: tdf.VerbChange, Changes: changes.changes()}, refs)
}

// CancelOpen cancels the open tasks of a group and returns how many. It does not cancel running tasks. "" stands for all tasks.
func (m *Manager) CancelOpen(ctx context.Context, group string) (int, error) {
	var refs []Ref
	for t, err := range m.List(ctx, Query{Group: group, States: []tdf.State{tdf.Open}}) {
		if err != nil {
			return 0, fmt.Errorf("cancel open tasks: %w", err)
		}
		refs = append(refs, Ref{t.ID, AnyRound})
	}
	result, err := m.act(ctx, acting.Action{Verb: tdf.VerbCancel, From: []tdf.State{tdf.Open}}, refs)
	return result.Done, err
}

func (m *Manager) act(ctx context.Context, action acting.Action, refs []Ref) (Result, error) {
	of := make([]acting.Ref, len(refs))
	for i, r := range refs {
		of[i] = acting.Ref(r)
	}
	result, err := acting.Do(ctx, m.store, m.name, action, of...)
	return Result(result), err
}
