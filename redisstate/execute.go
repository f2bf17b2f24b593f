package redisstate

import (
	"context"

	"github.com/tdf-framework/tdf"
)

// Execute reports rounds that ended (see [tdf.Task.Execute]). A result that is no longer
// wanted, because the round is over or was somebody else's, is a *[tdf.StateError] in its
// outcome; one that was reported before is a success.
func (s *Store) Execute(ctx context.Context, worker string, results ...tdf.Move) ([]Outcome, error) {
	return s.apply(ctx, worker, unitsOf(results), false)
}

// unitsOf makes each move a unit of its own.
func unitsOf(moves []tdf.Move) []Unit {
	units := make([]Unit, len(moves))
	for i, m := range moves {
		units[i] = Unit{Moves: []tdf.Move{m}}
	}
	return units
}
