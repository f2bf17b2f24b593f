package redisstate

import (
	"cmp"
	"context"

	"github.com/tdf-framework/tdf"
)

// openUnique opens tasks, some of which have unique keys. For each definition whose key another task holds, it returns the
// id of that task.
func (s *Store) openUnique(ctx context.Context, who, newGroup string, definitions []tdf.Properties) ([]Opened, error) {
	units := make([]Unit, len(definitions))
	for i := range definitions {
		units[i].Open = definitions[i : i+1]
	}
	var opened []Opened
	for newGroup != "" && len(units) > 0 { // one call per definition, until one opens the first task of the group
		units[0].NewGroup = newGroup
		outcomes, err := s.Apply(ctx, who, units[0])
		if opened, err = appendOpened(opened, outcomes, err); err != nil {
			return opened, err
		}
		if !opened[len(opened)-1].Existing {
			newGroup = ""
		}
		units = units[1:]
	}
	outcomes, err := s.Apply(ctx, who, units...)
	return appendOpened(opened, outcomes, err)
}

// appendOpened appends one answer per outcome. It returns the first error of the outcomes, or else err.
func appendOpened(opened []Opened, outcomes []Outcome, err error) ([]Opened, error) {
	var refused error
	for _, o := range outcomes {
		if o.Err != nil {
			refused = cmp.Or(refused, o.Err)
			opened = append(opened, Opened{})
			continue
		}
		opened = append(opened, Opened{o.IDs[0], o.Held() > 0})
	}
	return opened, cmp.Or(refused, err)
}
