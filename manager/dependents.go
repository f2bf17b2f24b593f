package manager

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// Dependents returns the tasks that have failed because the given tasks did not succeed (docs/lifecycle.md,
// "Dependencies"). These are the tasks that waited for the given tasks or for their groups, the tasks that waited for
// those, and so on. To run a failed branch again, retry the given tasks together with their dependents. The method
// reads the lists of all failed and archived tasks.
func (m *Manager) Dependents(ctx context.Context, refs ...Ref) ([]Ref, error) {
	failed := map[int64]dependencies.Dependent{}
	ofTask, ofGroup := map[int64][]int64{}, map[string][]int64{}
	err := dependencies.EachDependent(ctx, m.in().Store, func(d dependencies.Dependent) {
		failed[d.ID] = d
		for _, id := range d.After {
			ofTask[id] = append(ofTask[id], d.ID)
		}
		if d.Group != "" {
			ofGroup[d.Group] = append(ofGroup[d.Group], d.ID)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("find dependents: %w", err)
	}
	known, queue := map[int64]bool{}, make([]int64, len(refs))
	for i, r := range refs {
		queue[i], known[r.ID] = r.ID, true
	}
	groups := map[string]bool{}
	var found []Ref
	add := func(ids []int64) {
		for _, id := range ids {
			if !known[id] {
				known[id] = true
				queue, found = append(queue, id), append(found, Ref{ID: id, Round: failed[id].Round})
			}
		}
	}
	for len(queue) > 0 && len(failed) > 0 {
		page := queue[:min(len(queue), idsPerPage)]
		queue = queue[len(page):]
		for _, id := range page {
			add(ofTask[id])
		}
		if len(ofGroup) == 0 {
			continue
		}
		stored, err := m.in().Store.Read(ctx, page, redisstate.Want{Fields: redisstate.Head})
		if err != nil {
			return nil, fmt.Errorf("find dependents: %w", err)
		}
		for _, t := range stored {
			if t.Task != nil && t.Task.Group != "" && !groups[t.Task.Group] {
				groups[t.Task.Group] = true
				add(ofGroup[t.Task.Group])
			}
		}
	}
	return found, nil
}
