package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// An Act is something that is done to tasks by hand (docs/lifecycle.md, "By hand").
type Act struct {
	// Verb is one of reopen (finished tasks, archived ones too: each gets one more round and keeps its
	// counters), change (open tasks), release (running ones are taken from their workers), cancel (open
	// and running ones; their outcome is cancelled), archive (those that wait for a manager), and remove
	// (finished ones).
	Verb tdf.Verb

	Changes   tdf.Changes // to reopen with, or to change to
	Elsewhere bool        // release: the workers that have the tasks do not get them again
}

// Acted is what became of it.
type Acted struct {
	Done int
	// Refused has an error for each task that was left as it is: mostly a *[tdf.StateError] that says
	// where it was found, or a *[tdf.PropertyError] or [tdf.ErrUnchanged] about changes.
	Refused []error
}

// Reopen opens finished tasks again, archived ones too. Each task is reopened or not by itself: the
// error joins one for each that was not.
func (m *Manager) Reopen(ctx context.Context, ids ...int64) error {
	return m.actJoined(ctx, Act{Verb: tdf.VerbReopen}, ids)
}

// Cancel gives up tasks that are open or running: they become expired, with the outcome
// cancelled; a program that runs is ended by its worker. Errors are those of Reopen.
func (m *Manager) Cancel(ctx context.Context, ids ...int64) error {
	return m.actJoined(ctx, Act{Verb: tdf.VerbCancel}, ids)
}

func (m *Manager) actJoined(ctx context.Context, act Act, ids []int64) error {
	acted, err := m.Act(ctx, act, ids...)
	return errors.Join(append(acted.Refused, err)...)
}

const (
	handBatch = 500
	handTries = 5 // a task that moves meanwhile may still be where the verb applies
)

// Act does something to tasks by hand, to each by itself, and notes in its log who did. An error
// means that some of them were not reached; what became of the others is told all the same.
func (m *Manager) Act(ctx context.Context, act Act, ids ...int64) (Acted, error) {
	decide, err := act.decider()
	if err != nil {
		return Acted{}, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var acted Acted
	for page := range slices.Chunk(ids, handBatch) {
		if err := m.actOn(ctx, act.Verb, decide, page, &acted); err != nil {
			return acted, fmt.Errorf("%s tasks: %w", act.Verb, err)
		}
	}
	return acted, nil
}

// decider returns what decides over one task.
func (a Act) decider() (func(*tdf.Task) (tdf.Move, error), error) {
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
	}
	return nil, fmt.Errorf("%q is nothing that is done to tasks by hand", a.Verb)
}

func (m *Manager) actOn(ctx context.Context, verb tdf.Verb, decide func(*tdf.Task) (tdf.Move, error), ids []int64, acted *Acted) error {
	for try := 1; len(ids) > 0; try++ {
		seen, err := m.store.Load(ctx, ids)
		if err != nil {
			return err
		}
		var units []redisstate.Unit
		for _, s := range seen {
			move, err := decideByHand(verb, decide, s)
			if err != nil {
				acted.Refused = append(acted.Refused, err)
				continue
			}
			units = append(units, redisstate.Unit{Moves: []tdf.Move{move}})
		}
		outcomes, err := m.store.Apply(ctx, m.name, units...)
		ids = nil
		for i, o := range outcomes {
			switch {
			case o.Err == nil:
				acted.Done++
			case try < handTries:
				ids = append(ids, units[i].Moves[0].ID)
			default:
				acted.Refused = append(acted.Refused, o.Err)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func decideByHand(verb tdf.Verb, decide func(*tdf.Task) (tdf.Move, error), s redisstate.Seen) (tdf.Move, error) {
	if s.Task == nil {
		return tdf.Move{}, &tdf.StateError{ID: s.ID, Verb: verb, State: tdf.None}
	}
	move, err := decide(s.Task)
	var elsewhere *tdf.StateError
	if err != nil && !errors.As(err, &elsewhere) {
		err = fmt.Errorf("%s task %d: %w", verb, s.ID, err)
	}
	return move, err
}
