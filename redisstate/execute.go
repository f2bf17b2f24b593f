package redisstate

import (
	"context"

	"github.com/tdf-framework/tdf"
)

// Execute reports rounds that have ended (see [tdf.Task.Execute]). If a result is too late, or belongs to another
// claim, the error in its Outcome is a *[tdf.StateError]. A repeated report succeeds.
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
