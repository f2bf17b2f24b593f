package redisstate

import (
	"cmp"
	"context"

	"github.com/tdf-framework/tdf"
)

// An Opened is the answer to one definition.
type Opened struct {
	ID       int64 // 0 if Redis refused to open the task
	Existing bool  // whether the task already existed: it holds the unique key of the definition
}

// OpenUnique opens tasks, some of which have unique keys (docs/lifecycle.md, "Unique tasks"). For each definition whose key
// another task holds, it returns the id of that task. If newGroup is not empty and the group of this name has tasks, OpenUnique
// opens nothing, and the error is [ErrGroupTaken]. Each task is opened on its own. If Redis refuses a task or a call fails,
// OpenUnique returns the error, and the answers that Redis has given.
func (s *Store) OpenUnique(ctx context.Context, who, newGroup string, definitions ...tdf.Properties) ([]Opened, error) {
	if err := tdf.ValidateAll(definitions); err != nil {
		return nil, err
	}
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
