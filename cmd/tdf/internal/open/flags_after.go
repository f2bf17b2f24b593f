package open

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/sweep"
)

// afterFlags holds the flags of tdf open that name the dependencies of the new tasks.
type afterFlags struct {
	cli.AfterFlags
	same   string
	paired map[sweep.Point][]int64 // the tasks of the campaign in same, by their parameters
}

func (f *afterFlags) flags(c *cobra.Command) {
	flags := c.Flags()
	f.AfterFlags.Flags(flags)
	flags.StringVar(&f.same, "after-same", "",
		"`NAME` campaign: each new task waits until the task of this campaign with the same parameters has succeeded")
}

// read reads the campaign of --after-same.
func (f *afterFlags) read(ctx context.Context, m *cli.Client) error {
	if f.same == "" {
		return nil
	}
	f.paired = map[sweep.Point][]int64{}
	for meta, err := range m.Admin().Metas(ctx, f.same) {
		if err != nil {
			return err
		}
		if point, ok := sweep.PointOf(meta.Text); ok {
			f.paired[point] = append(f.paired[point], meta.ID)
		}
	}
	if len(f.paired) == 0 {
		return cli.Usagef("--after-same %s: the campaign has no tasks with parameters", f.same)
	}
	return nil
}

// checkShard checks that the campaigns that tasks wait for have a part in the namespace of a shard. Redis would refuse
// the tasks of a shard without one when those of other shards are already open.
func (f *afterFlags) checkShard(ctx context.Context, m *cli.Client) error {
	for _, campaign := range []string{f.Group, f.AnyGroup} {
		if campaign == "" {
			continue
		}
		counts, err := m.Counts(ctx, campaign)
		if err != nil {
			return err
		}
		if counts.Total() == 0 {
			return cli.Usagef("campaign %s has no tasks in namespace %s, so nothing was opened: a task waits only for "+
				"the part in its own namespace; open both campaigns with fewer --shards", campaign, m.Namespace())
		}
	}
	return nil
}

// pair adds the dependencies of --after-same to a task.
func (f *afterFlags) pair(c *sweep.Candidate) error {
	if f.same == "" {
		return nil
	}
	ids := f.paired[c.Point]
	if len(ids) == 0 {
		return fmt.Errorf("--after-same: campaign %s has no task with these parameters", f.same)
	}
	d := task.Dependencies{}
	if c.Task.After != nil {
		d = *c.Task.After
	}
	d.Tasks = append(d.Tasks[:len(d.Tasks):len(d.Tasks)], ids...)
	c.Task.After = &d
	return nil
}
