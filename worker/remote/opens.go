package remote

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// forOpening reads what decides whether reports may open their new tasks: the campaigns of the tasks for which those
// wait, and whether rounds may open tasks at all.
func (d *Desk) forOpening(ctx context.Context, reports []Report) (groups map[int64]string, closed, err error) {
	groups = map[int64]string{}
	opens := false
	for i := range reports {
		opens = opens || len(reports[i].Open) > 0
		for j := range reports[i].Open {
			for _, after := range []*tdf.Dependencies{reports[i].Open[j].After, reports[i].Open[j].AfterAny} {
				if after == nil {
					continue
				}
				for _, id := range after.Tasks {
					groups[id] = ""
				}
			}
		}
		if len(groups) > tdf.MaxDependencies {
			return nil, nil, invalid("open: the new tasks of all reports wait for more than %d tasks", tdf.MaxDependencies)
		}
	}
	if !opens {
		return nil, nil, nil
	}
	if closed = d.store.RoundsOpen(ctx); closed != nil && closed != redisstate.ErrRoundsOpenNothing {
		return nil, nil, closed
	}
	stored, err := d.store.Read(ctx, slices.Collect(maps.Keys(groups)), redisstate.Want{Fields: redisstate.Head})
	for _, s := range stored {
		if s.Task != nil {
			groups[s.ID] = s.Task.Group
		}
	}
	return groups, closed, err
}

// checkOpen returns an error if the token of the report may not open the new tasks.
func (x *delivery) checkOpen() error {
	inGroup := func(id int64) bool { return x.task.Group != "" && x.groups[id] == x.task.Group }
	for i := range x.open {
		if err := x.token.CheckFollowing(x.task, &x.open[i], inGroup); err != nil {
			return fmt.Errorf("open, task %d: %w", i+1, err)
		}
	}
	return nil
}
