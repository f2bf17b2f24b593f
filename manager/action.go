package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// An Action is a change of tasks that [Manager.Do] makes. The methods for single actions, such as [Manager.Retry], call Do.
type Action struct {
	Verb      tdf.Verb    // VerbReopen, VerbChange, VerbRelease, VerbCancel, VerbArchive, VerbRemove or VerbRequire
	From      []tdf.State // the state of a task must be one of these; if empty, each state that the verb allows is possible
	Changes   tdf.Changes // the new properties, for VerbReopen and VerbChange
	Elsewhere bool        // for VerbRelease: the current worker of a task cannot claim the task again
}

const (
	tasksAtOnce = 500
	tries       = 5 // how often Do tries an action: after a conflict with another Move, the action may still be possible
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
		seen, err := h.m.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
		if err != nil {
			return err
		}
		if h.now, err = h.m.store.Now(ctx); err != nil {
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
		outcomes, err := h.m.acts.Carry(ctx, units)
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

// moveAt returns the Move of the action for a task, at the time now.
func (a Action) moveAt(t *tdf.Task, now tdf.Time) (tdf.Move, error) {
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
