package redisstate

import (
	"context"

	"github.com/tdf-framework/tdf"
)

// An Opened is the answer to one definition.
type Opened struct {
	ID       int64
	Existing bool // whether the task already existed: it holds the unique key of the definition
}

// OpenUnique opens tasks, some of which have unique keys (docs/lifecycle.md, "Unique tasks"). For each definition whose key
// another task holds, it returns that task. If newGroup is not empty and the group of this name has tasks, OpenUnique
// opens nothing, and the error is [ErrGroupTaken]. Each task is opened on its own. If a call fails, OpenUnique also
// returns the first answers, which Redis had already given.
func (s *Store) OpenUnique(ctx context.Context, who, newGroup string, definitions ...tdf.Properties) ([]Opened, error) {
	if err := validate(definitions); err != nil {
		return nil, err
	}
	units := make([]Unit, len(definitions))
	for i := range definitions {
		units[i].Open = definitions[i : i+1]
	}
	var opened []Opened
	if newGroup != "" && len(units) > 0 {
		units[0].NewGroup = newGroup
		outcomes, err := s.Apply(ctx, who, units[0]) // alone, because the other units would not notice its failure
		if opened, err = appendOpened(opened, outcomes, err); err != nil {
			return opened, err
		}
		units = units[1:]
	}
	outcomes, err := s.Apply(ctx, who, units...)
	return appendOpened(opened, outcomes, err)
}

func appendOpened(opened []Opened, outcomes []Outcome, err error) ([]Opened, error) {
	for _, o := range outcomes {
		if o.Err != nil {
			return opened, o.Err
		}
		opened = append(opened, Opened{o.IDs[0], o.Existing != nil && o.Existing[0]})
	}
	return opened, err
}
