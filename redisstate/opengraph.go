package redisstate

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
)

// openGraph opens tasks that wait for other tasks of the same call. For more tasks than fit into one atomic call, it
// makes several calls. After an error, the ids of the tasks that were not opened are 0.
func (s *Store) openGraph(
	ctx context.Context, who string, on Condition, definitions []task.Properties,
) ([]Opened, error) {
	order, err := task.InOrder(definitions)
	if err != nil {
		return nil, err
	}
	opened, opens := make([]Opened, len(definitions)), task.Openers(definitions)
	for len(order) > 0 {
		n := openBatch(len(order), func(i int) *task.Properties { return &definitions[order[i]] })
		outcomes, err := s.Apply(ctx, who, Unit{Open: resolved(definitions, order[:n], opens, opened), If: on})
		if len(outcomes) == 0 {
			return opened, err
		}
		o := outcomes[0]
		if o.Err != nil {
			return opened, o.Err
		}
		for i, at := range order[:n] {
			opened[at] = Opened{o.IDs[i], o.Existing != nil && o.Existing[i]}
		}
		if err != nil {
			return opened, err
		}
		order, on = order[n:], on.later()
	}
	return opened, nil
}

// resolved returns the definitions at the given places, for one call to Redis. It replaces a dependency on a task that
// an earlier call has opened with the id of this task. Any other dependency gets the place of its task in this call.
// The argument opens is the result of [task.Openers].
func resolved(definitions []task.Properties, places, opens []int, opened []Opened) []task.Properties {
	inCall := map[int]int{}
	for i, at := range places {
		inCall[at] = i
	}
	resolve := func(d *task.Dependencies) *task.Dependencies {
		if d == nil || len(d.Places) == 0 {
			return d
		}
		r := &task.Dependencies{Tasks: slices.Clone(d.Tasks), Group: d.Group}
		for _, at := range d.Places {
			if i, in := inCall[opens[at]]; in {
				r.Places = append(r.Places, i)
			} else {
				r.Tasks = append(r.Tasks, opened[opens[at]].ID)
			}
		}
		return r
	}
	all := make([]task.Properties, len(places))
	for i, at := range places {
		all[i] = definitions[at]
		all[i].After, all[i].AfterAny = resolve(all[i].After), resolve(all[i].AfterAny)
	}
	return all
}
