package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// LastID returns the id that was given out last; 0: none was.
func (m *Manager) LastID(ctx context.Context) (int64, error) { return m.store.LastID(ctx) }

// Rounds that [Manager.Printed] can be asked for by what they are.
const (
	LastRound    = -1 // the one that ran last ([tdf.Task.LastRun])
	CurrentRound = -2 // the one that waits, runs or waits for its judgement; of a task that has ended, the last
)

// ErrNoRound says that a task has not had that round.
var ErrNoRound = errors.New("there is no such round")

// Printed reads a task with the texts of one round and of no other: stdout, stderr, tail and result. It returns that
// round's number. Of other rounds it knows the last two. Errors are [tdf.ErrNoTask] and [ErrNoRound].
func (m *Manager) Printed(ctx context.Context, id int64, round int) (*tdf.Task, int, error) {
	stored, err := m.store.ReadOne(ctx, id, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(listing.SummaryRounds)})
	if err != nil {
		return nil, 0, err
	}
	t := stored.Task
	switch {
	case round == CurrentRound && !t.State.Finished():
		round = t.Round
	case round == LastRound, round == CurrentRound:
		round = t.LastRun()
	case round < 0 || round > t.Round:
		return nil, 0, fmt.Errorf("round %d of task %d: %w: it is in round %d", round, id, ErrNoRound, t.Round)
	}
	stored, err = m.store.ReadOne(ctx, id, redisstate.Want{
		Fields: redisstate.Facts, Rounds: redisstate.OneRound(round),
		Texts: redisstate.SameTexts(redisstate.TextsOf{Round: round, Texts: tdf.TextOutput | tdf.TextError | tdf.TextResult | tdf.TextTail}),
	})
	if err != nil {
		return nil, 0, err
	}
	t.Rounds[round] = stored.Task.Rounds.At(round)
	return t, round, nil
}
