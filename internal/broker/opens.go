package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A campaign is a group of tasks with the same owner.
type campaign struct{ group, owner string }

// forOpening reads what decides whether reports may open their new tasks: the campaigns of the tasks for which those
// wait, and whether rounds may open tasks at all.
func (b *Broker) forOpening(ctx context.Context, reports []Report) (of map[int64]campaign, closed, err error) {
	of = map[int64]campaign{}
	opens := false
	for i := range reports {
		opens = opens || len(reports[i].Open) > 0
		for j := range reports[i].Open {
			for _, after := range []*task.Dependencies{reports[i].Open[j].After, reports[i].Open[j].AfterAny} {
				if after == nil {
					continue
				}
				for _, id := range after.Tasks {
					of[id] = campaign{}
				}
			}
		}
		if len(of) > task.MaxDependencies {
			return nil, nil, invalid("open: the new tasks of all reports wait for more than %d tasks",
				task.MaxDependencies)
		}
	}
	if !opens {
		return nil, nil, nil
	}
	if closed = b.store.RoundsOpen(ctx); closed != nil && closed != redisstate.ErrRoundsOpenNothing {
		return nil, nil, closed
	}
	stored, err := b.store.Read(ctx, slices.Collect(maps.Keys(of)), redisstate.Want{Fields: redisstate.Head})
	for _, s := range stored {
		if s.Task != nil {
			of[s.ID] = campaign{s.Task.Group, s.Task.Owner}
		}
	}
	return of, closed, err
}

// checkOpen returns an error if the token of the report may not open the new tasks.
func (x *reportDelivery) checkOpen(open []task.Properties) error {
	own := campaign{x.Task.Group, x.Task.Owner}
	inGroup := func(id int64) bool { return own.group != "" && x.campaigns[id] == own }
	for i := range open {
		if err := x.token.CheckFollowing(x.Task, &open[i], inGroup); err != nil {
			return fmt.Errorf("open, task %d: %w", i+1, err)
		}
	}
	return nil
}
