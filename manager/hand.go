package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Reopen opens finished tasks again by hand, archived ones too: each gets one more round, and
// keeps its counters (docs/lifecycle.md). Each task is reopened or not by itself: the error
// joins one for each that was not, mostly a *[tdf.StateError] that says where it was found.
func (m *Manager) Reopen(ctx context.Context, ids ...int64) error {
	return m.byHand(ctx, tdf.VerbReopen, (*tdf.Task).Reopen, ids)
}

// Cancel gives up tasks that are open or running: they become expired, with the outcome
// cancelled; a program that runs is ended by its worker. Errors are those of Reopen.
func (m *Manager) Cancel(ctx context.Context, ids ...int64) error {
	return m.byHand(ctx, tdf.VerbCancel, (*tdf.Task).Cancel, ids)
}

const (
	handBatch = 500
	handTries = 5 // a task that moves meanwhile may still be where the verb applies
)

func (m *Manager) byHand(ctx context.Context, verb tdf.Verb, decide func(*tdf.Task) (tdf.Move, error), ids []int64) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var elsewhere []error
	for page := range slices.Chunk(ids, handBatch) {
		errs, err := m.moveByHand(ctx, verb, decide, page)
		elsewhere = append(elsewhere, errs...)
		if err != nil {
			return errors.Join(append(elsewhere, fmt.Errorf("%s tasks: %w", verb, err))...)
		}
	}
	return errors.Join(elsewhere...)
}

// moveByHand returns what was wrong with each task, and what went wrong with the whole.
func (m *Manager) moveByHand(ctx context.Context, verb tdf.Verb, decide func(*tdf.Task) (tdf.Move, error), ids []int64) (wrong []error, err error) {
	for try := 1; len(ids) > 0; try++ {
		seen, err := m.store.Load(ctx, ids)
		if err != nil {
			return wrong, err
		}
		var units []redisstate.Unit
		for _, s := range seen {
			move, err := decideByHand(verb, decide, s)
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			units = append(units, redisstate.Unit{Moves: []tdf.Move{move}})
		}
		outcomes, err := m.store.Apply(ctx, m.name, units...)
		ids = nil
		for i, o := range outcomes {
			switch {
			case o.Err != nil && try < handTries:
				ids = append(ids, units[i].Moves[0].ID)
			case o.Err != nil:
				wrong = append(wrong, o.Err)
			}
		}
		if err != nil {
			return wrong, err
		}
	}
	return wrong, nil
}

func decideByHand(verb tdf.Verb, decide func(*tdf.Task) (tdf.Move, error), s redisstate.Seen) (tdf.Move, error) {
	if s.Task == nil {
		return tdf.Move{}, &tdf.StateError{ID: s.ID, Verb: verb, State: tdf.None}
	}
	return decide(s.Task)
}
