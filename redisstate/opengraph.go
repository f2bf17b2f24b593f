package redisstate

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
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

// linksAtOnce is the number of dependencies that CheckDependencies reads at once.
const linksAtOnce = 5000

// CheckDependencies checks the dependencies of new tasks. The error wraps a *[task.PropertyError] if a task or a group
// does not exist, or if a task that must succeed is already finished without success. For a request that was carried
// out before, it checks nothing.
func (s *Store) CheckDependencies(ctx context.Context, definitions []task.Properties) error {
	var all []requirement
	seen := map[requirement]bool{}
	for i := range definitions {
		if !definitions[i].HasDependencies() {
			continue
		}
		for _, r := range requirementsOf(&definitions[i]) {
			if !seen[r] {
				seen[r] = true
				all = append(all, r)
			}
		}
	}
	if len(all) == 0 || conn.IsRepeated(ctx) {
		return nil
	}
	if err := task.ValidateAll(definitions); err != nil {
		return err
	}
	for page := range slices.Chunk(all, linksAtOnce) {
		if err := s.checkRequirements(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

// A requirement is a dependency of a new task: a task or a group.
type requirement struct {
	property string
	id       int64
	group    string
}

func requirementsOf(d *task.Properties) (all []requirement) {
	for _, of := range []struct {
		*task.Dependencies
		task, group string
	}{{d.After, task.FieldAfter, task.FieldAfterGroup}, {d.AfterAny, task.FieldAfterAny, task.FieldAfterGroupAny}} {
		if of.Dependencies == nil {
			continue
		}
		for _, id := range of.Tasks {
			all = append(all, requirement{of.task, id, ""})
		}
		if of.Group != "" {
			all = append(all, requirement{of.group, 0, of.Group})
		}
	}
	return all
}

func (s *Store) checkRequirements(ctx context.Context, all []requirement) error {
	tasks, groups := make([]*redis.SliceCmd, len(all)), make([]*redis.IntCmd, len(all))
	err := s.Conn.Pipeline(ctx, "read dependencies", func(p redis.Pipeliner) {
		for i, r := range all {
			if r.group != "" {
				groups[i] = p.Exists(ctx, s.Keys.Group(r.group))
			} else {
				tasks[i] = p.HMGet(ctx, s.Keys.Task(r.id), "state", "outcome")
			}
		}
	})
	if err != nil {
		return err
	}
	for i, r := range all {
		if r.group != "" {
			if groups[i].Val() == 0 {
				return &task.PropertyError{Property: r.property, Reason: fmt.Sprintf("group %q has no tasks", r.group)}
			}
			continue
		}
		values := append(tasks[i].Val(), nil, nil) // the key of the task may be no hash
		if err := task.CheckDependency(r.property, r.id, task.State(conn.Text(values[0])),
			conn.Text(values[1])); err != nil {
			return err
		}
	}
	return nil
}
