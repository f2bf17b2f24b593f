package admin

import (
	"slices"

	"github.com/tdf-framework/tdf/manager"
)

// A Selection has a query for each of the [Shards]. A shard whose query is nil has no selected task.
type Selection []*manager.Query

// All returns a Selection that has the same query for each namespace. The query must have no ids.
func (s *Shards) All(q manager.Query) Selection {
	all := make(Selection, len(s.all))
	for i := range all {
		all[i] = &q
	}
	return all
}

// Select returns the tasks that a function selects in each namespace by their names, or in all namespaces if there are
// no names. The function gets the ids of a namespace, without its name.
func (s *Shards) Select(names []string, query func(ids []string) (manager.Query, error)) (Selection, error) {
	ids := make([][]string, len(s.all))
	for _, name := range names {
		namespace, id := manager.SplitTaskName(name)
		m, _, err := s.In(namespace)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(s.all, func(of shard) bool { return of.manager == m })
		ids[i] = append(ids[i], id)
	}
	all := make(Selection, len(s.all))
	for i := range all {
		if len(names) > 0 && len(ids[i]) == 0 {
			continue
		}
		q, err := query(ids[i])
		if err != nil {
			return nil, err
		}
		all[i] = &q
	}
	return all, nil
}

// With returns a Selection with each query changed.
func (all Selection) With(change func(*manager.Query)) Selection {
	changed := make(Selection, len(all))
	for i, q := range all {
		if q != nil {
			of := *q
			change(&of)
			changed[i] = &of
		}
	}
	return changed
}
