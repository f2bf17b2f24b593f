package redisstate

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
)

// keepApart returns the definitions of new tasks. If workers of the original TDF work in the namespace, it returns a copy that
// keeps tasks from them.
func (s *Store) keepApart(ctx context.Context, definitions []tdf.Properties) ([]tdf.Properties, error) {
	if !slices.ContainsFunc(definitions, func(d tdf.Properties) bool { return !tdf.OriginalFetches(d.Source) }) {
		return definitions, nil
	}
	settings, _, err := s.known(ctx, roomForOpens)
	if err != nil || !settings.OriginalWorkers {
		return definitions, err
	}
	definitions = slices.Clone(definitions)
	for i := range definitions {
		definitions[i].Apart = true
	}
	return definitions, nil
}

// markApart does the same for tasks that were read. Only tasks that are or may become open need it.
func (s *Store) markApart(ctx context.Context, stored []Stored) error {
	var apart []*tdf.Task
	for i := range stored {
		t := stored[i].Task
		if t != nil && (t.State == tdf.Open || t.State.Finished()) && !tdf.OriginalFetches(t.Source) {
			apart = append(apart, t)
		}
	}
	if len(apart) == 0 {
		return nil
	}
	settings, _, err := s.known(ctx, roomForClaims)
	for _, t := range apart {
		t.Apart = settings.OriginalWorkers
	}
	return err
}
