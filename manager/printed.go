package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/tdf-framework/tdf"
)

// LastID returns the id that was given out last; 0: none was.
func (m *Manager) LastID(ctx context.Context) (int64, error) { return m.store.LastID(ctx) }

// LastRound asks [Manager.Printed] for the round that ran last.
const LastRound = -1

// ErrNoRound says that a task has not had that round.
var ErrNoRound = errors.New("there is no such round")

// Printed reads a task with the texts of one round and of no other: stdout, stderr, tail and result. It returns that
// round's number. Errors are [tdf.ErrNoTask] and [ErrNoRound].
func (m *Manager) Printed(ctx context.Context, id int64, round int) (*tdf.Task, int, error) {
	t, err := m.glance(ctx, id, roundsLooked)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case round == LastRound:
		round = LastRun(t)
	case round < 0 || round > t.Round:
		return nil, 0, fmt.Errorf("round %d of task %d: %w: it is in round %d", round, id, ErrNoRound, t.Round)
	case t.Round-round >= roundsLooked:
		if t, err = m.glance(ctx, id, t.Round-round+roundsLooked); err != nil {
			return nil, 0, err
		}
	}
	_, _, err = fill(ctx, m.store, []*tdf.Task{t}, func(*tdf.Task) []textOf { return textsOf(round) }, 0)
	return t, round, err
}

// glance reads a task without its texts.
func (m *Manager) glance(ctx context.Context, id int64, rounds int) (*tdf.Task, error) {
	found, err := m.store.Glance(ctx, []int64{id}, rounds, func(*tdf.Task) bool { return true })
	if err == nil && found[0] == nil {
		err = fmt.Errorf("task %d: %w", id, tdf.ErrNoTask)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// textsOf are all texts of a round.
func textsOf(round int) []textOf {
	return []textOf{{round, tdf.RoundOutput}, {round, tdf.RoundError}, {round, tdf.RoundTail}, {round, "result"}}
}
