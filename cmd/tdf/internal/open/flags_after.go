package open

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/sweep"
)

// afterFlags holds the flags of tdf open that name the dependencies of the new tasks.
type afterFlags struct {
	tasks, anyTasks string
	group, anyGroup string
	same            string
	paired          map[sweep.Point][]int64 // the tasks of the campaign in same, by their parameters
}

func (f *afterFlags) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.tasks, "after", "", "`IDS` tasks that must succeed before the new tasks run: 3,7-9")
	flags.StringVar(&f.anyTasks, "after-any", "",
		"`IDS` tasks that must end before the new tasks run, with any outcome")
	flags.StringVar(&f.group, "after-campaign", "",
		"`NAME` campaign of which all tasks must succeed before the new tasks run")
	flags.StringVar(&f.anyGroup, "after-campaign-any", "",
		"`NAME` campaign that must be complete before the new tasks run, with any outcomes")
	flags.StringVar(&f.same, "after-same", "",
		"`NAME` campaign: each new task waits until the task of this campaign with the same parameters has succeeded")
}

// properties returns the properties d with the dependencies of the flags.
func (f *afterFlags) properties(d task.Properties) (task.Properties, error) {
	var err error
	d.After, err = dependencies("after", f.tasks, f.group)
	if err != nil {
		return d, err
	}
	d.AfterAny, err = dependencies("after-any", f.anyTasks, f.anyGroup)
	return d, err
}

func dependencies(flag, ids, group string) (*task.Dependencies, error) {
	if ids == "" && group == "" {
		return nil, nil
	}
	d := &task.Dependencies{Group: group}
	var err error
	if ids != "" {
		if d.Tasks, err = cli.ParseIDs(strings.Split(ids, ",")); err != nil {
			return nil, cli.Usagef("--%s: %v", flag, err)
		}
	}
	return d, nil
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
	for _, campaign := range []string{f.group, f.anyGroup} {
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
