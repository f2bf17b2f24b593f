// Package acting applies the actions of operators to tasks: retry, cancel, requeue, archive, remove and change
// (docs/lifecycle.md, "By hand"). Packages manager and admin share it.
package acting

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Store lists the methods of a *redisstate.Store that this package uses.
type Store interface {
	Now(ctx context.Context) (tdf.Time, error)
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
}

// An Action is an operation that can be applied to tasks.
type Action struct {
	Verb      tdf.Verb    // VerbReopen, VerbChange, VerbRelease, VerbCancel, VerbArchive, VerbRemove or VerbRequire
	From      []tdf.State // the state of a task must be one of these; if empty, each state that the verb allows is possible
	Changes   tdf.Changes // the new properties, for VerbReopen and VerbChange
	Elsewhere bool        // for VerbRelease: the current worker of a task cannot claim the task again
}

// AnyRound is the Round of a [Ref] that matches the task in any round.
const AnyRound = -1

// A Ref names a task and the round in which it was seen. If the task is in another round, an action skips the task.
type Ref struct {
	ID    int64
	Round int // the round in which the task must be, or AnyRound
}

// A Result says how many tasks an action changed, and why it skipped other tasks.
type Result struct {
	Done int // the number of changed tasks
	// Skipped contains an error for each task that was skipped. If the task's state or round does not allow the action,
	// the error wraps a *[tdf.StateError]. If the task cannot have the new properties, the error wraps a
	// *[tdf.PropertyError], [tdf.ErrUnchanged] or [ErrPast]. If another task holds the unique key of a retried task, it is a
	// *[tdf.UniqueError].
	Skipped []error
}

// ErrPast is the reason why a retry skips a task: by Redis's clock, the end_before of the task is past, so the task
// would expire at once.
var ErrPast = tdf.NewError(tdf.CodeConflict, "its end_before is past, so the task would expire at once")

const (
	tasksAtOnce = 500
	tries       = 5 // how often Do tries an action: after a conflict with another Move, the action may still be possible
)

// Do applies an action to each task separately. The parameter who is the actor's name. Do writes this name into the
// logs of the tasks. If Do fails, the result covers the tasks that were handled before the error.
func Do(ctx context.Context, s Store, who string, action Action, refs ...Ref) (Result, error) {
	decide, err := action.decider()
	if err != nil {
		return Result{}, err
	}
	h := hand{store: s, who: who, action: action, decide: decide, rounds: make(map[int64]int, len(refs))}
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
	store  Store
	who    string
	action Action
	decide func(*tdf.Task) (tdf.Move, error)
	rounds map[int64]int // the rounds of the Refs, by the id of the task
	now    tdf.Time
	result Result
}

// decider returns a function that decides the Move of one task.
func (a Action) decider() (func(*tdf.Task) (tdf.Move, error), error) {
	switch a.Verb {
	case tdf.VerbReopen:
		if a.Changes == (tdf.Changes{}) {
			return (*tdf.Task).Reopen, nil
		}
		return func(t *tdf.Task) (tdf.Move, error) { return t.ReopenWith(a.Changes) }, nil
	case tdf.VerbChange:
		return func(t *tdf.Task) (tdf.Move, error) { return t.Change(a.Changes) }, nil
	case tdf.VerbRelease:
		return func(t *tdf.Task) (tdf.Move, error) { return t.Requeue(a.Elsewhere) }, nil
	case tdf.VerbCancel:
		return (*tdf.Task).Cancel, nil
	case tdf.VerbArchive:
		return (*tdf.Task).Archive, nil
	case tdf.VerbRemove:
		return (*tdf.Task).Remove, nil
	case tdf.VerbRequire:
		return func(t *tdf.Task) (tdf.Move, error) { return t.Require(), nil }, nil
	}
	return nil, fmt.Errorf("act on tasks: unknown action %q", a.Verb)
}

func (h *hand) do(ctx context.Context, ids []int64) error {
	for try := 1; len(ids) > 0; try++ {
		seen, err := h.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
		if err != nil {
			return err
		}
		if h.now, err = h.store.Now(ctx); err != nil {
			return err
		}
		var units []redisstate.Unit
		for _, s := range seen {
			move, err := h.move(s)
			if err != nil {
				h.result.Skipped = append(h.result.Skipped, err)
				continue
			}
			units = append(units, redisstate.Unit{Moves: []tdf.Move{move}})
		}
		outcomes, err := h.store.Apply(ctx, h.who, units...)
		ids = nil
		for i, o := range outcomes {
			switch {
			case o.Err == nil:
				h.result.Done++
			case errors.As(o.Err, new(*tdf.UniqueError)): // another try would not help
				h.result.Skipped = append(h.result.Skipped, o.Err)
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

func (h *hand) move(s redisstate.Stored) (tdf.Move, error) {
	t := s.Task
	if t == nil {
		return tdf.Move{}, &tdf.StateError{ID: s.ID, Verb: h.action.Verb, State: tdf.None}
	}
	round := h.rounds[s.ID]
	if round != AnyRound && round != t.Round || len(h.action.From) > 0 && !slices.Contains(h.action.From, t.State) {
		return tdf.Move{}, &tdf.StateError{ID: s.ID, Verb: h.action.Verb, State: t.State, Round: t.Round}
	}
	return h.action.move(t, h.decide, h.now)
}

// Move returns the Move of the action for a task, at the time now.
func (a Action) Move(t *tdf.Task, now tdf.Time) (tdf.Move, error) {
	decide, err := a.decider()
	if err != nil {
		return tdf.Move{}, err
	}
	return a.move(t, decide, now)
}

func (a Action) move(t *tdf.Task, decide func(*tdf.Task) (tdf.Move, error), now tdf.Time) (tdf.Move, error) {
	move, err := decide(t)
	if err == nil && a.Verb == tdf.VerbReopen && a.Changes.Apply(t.Properties).EndBefore <= now {
		err = ErrPast
	}
	var elsewhere *tdf.StateError
	if err != nil && !errors.As(err, &elsewhere) {
		err = fmt.Errorf("%s task %d: %w", a.Verb, t.ID, err)
	}
	return move, err
}
