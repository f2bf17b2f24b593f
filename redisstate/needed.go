package redisstate

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// markNeeded sets Dependents to at least 1 for each finished task whose group unfinished tasks need. It also reports for
// each task whether its list of dependents has entries although the task is finished or does not exist. This happens if a
// component of an older release has finished the task, or another program has deleted the task.
func (s *Store) markNeeded(ctx context.Context, stored []Stored) (unheard []bool, err error) {
	groups, waiting := make([]*redis.FloatCmd, len(stored)), make([]*redis.IntCmd, len(stored))
	err = s.Pipeline(ctx, "read which tasks are needed", func(p redis.Pipeliner) {
		for i := range stored {
			t := stored[i].Task
			if t != nil && !t.State.Finished() {
				continue
			}
			if t != nil && t.Group != "" {
				groups[i] = p.ZScore(ctx, s.Keys.AwaitedGroups(), t.Group)
			}
			if t == nil || t.HasLinks {
				waiting[i] = p.Exists(ctx, s.Keys.DependentsPrefix()+strconv.FormatInt(stored[i].ID, 10))
			}
		}
	})
	unheard = make([]bool, len(stored))
	for i := range stored {
		if groups[i] != nil && groups[i].Err() == nil {
			stored[i].Task.Dependents = max(stored[i].Task.Dependents, 1)
		}
		unheard[i] = waiting[i] != nil && waiting[i].Val() > 0
	}
	return unheard, err
}
