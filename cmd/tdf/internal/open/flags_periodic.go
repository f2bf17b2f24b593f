package open

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// periodicFlags holds the flags of tdf open that store a periodic. Without them, its Schedule is "".
type periodicFlags struct{ manager.Periodic }

func (f *periodicFlags) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.Schedule, "every", "", "`SCHEDULE` times at which the servers open the tasks: five fields of "+
		"cron, @hourly, @daily, @weekly, @monthly, @yearly, or '@every 90m'; needs --name")
	flags.StringVar(&f.Name, "name", "", "`NAME` name of the periodic; one with this name is replaced")
	flags.StringVar(&f.Zone, "zone", "", "`ZONE` time zone of --every, such as Europe/Berlin (default: UTC)")
	flags.StringVar((*string)(&f.Overlap), "overlap", string(task.OverlapSkip),
		"`RULE` skip or open: what happens at a time of --every while tasks of an earlier time are unfinished")
	flags.StringVar((*string)(&f.Missed), "missed", string(task.MissedLast),
		"`RULE` last, none or all: which times of --every are opened late if no server ran")
}

func (f *periodicFlags) check(o *opening) error {
	if !o.changed("every") {
		for _, flag := range []string{"name", "zone", "overlap", "missed"} {
			if o.changed(flag) {
				return cli.Usagef("--%s without --every: it belongs to periodic tasks", flag)
			}
		}
		return nil
	}
	if o.extend || o.halt > 0 {
		return cli.Usagef("--every with --extend or --halt: a periodic has no campaign of its own; leave them out")
	}
	p := f.Periodic
	p.Tasks = make([]manager.Definition, 1) // the tasks are not known yet
	if err := p.Check(); err != nil {
		return cli.Usagef("--every: %v", err)
	}
	return nil
}

// storePeriodic stores the tasks as a periodic.
func (p *plan) storePeriodic(ctx context.Context) error {
	f := p.periodic.Periodic
	for c, err := range p.candidates() {
		if err != nil {
			return rowError(err)
		}
		if f.Tasks = append(f.Tasks, c.Task.Definition()); len(f.Tasks) > task.MaxPeriodicTasks {
			return cli.Usagef("--every: a periodic has at most %d tasks", task.MaxPeriodicTasks)
		}
	}
	if p.packed != nil {
		if err := cli.StoreProgram(ctx, p.m, *p.packed, p.a.Say); err != nil {
			return err
		}
	}
	if err := p.m.Periodics().Set(ctx, f); err != nil {
		return err
	}
	p.a.Say("%s: the servers open %s at each time of %q; see tdf periodic", format.OneLine(f.Name, 0),
		format.Tasks(int64(len(f.Tasks))), f.Schedule)
	return nil
}
