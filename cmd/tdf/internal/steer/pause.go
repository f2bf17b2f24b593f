package steer

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// pausables holds the flags that say what to pause or resume.
type pausables struct {
	queues, campaigns []string
	all               bool
}

func (p *pausables) flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&p.queues, "queue", nil,
		"`NAME` queue, or default for the tasks without a queue; may be repeated")
	c.Flags().StringArrayVar(&p.campaigns, "campaign", nil, "`NAME` campaign; may be repeated")
	c.Flags().BoolVar(&p.all, "all", false, "all tasks of the namespace")
}

// read returns what the flags name. It returns a usage error for a name that no queue or campaign can have.
func (p *pausables) read() ([]task.Pausable, error) {
	var all []task.Pausable
	for _, queue := range p.queues {
		all = append(all, task.Pausable{Queue: queue})
	}
	for _, campaign := range p.campaigns {
		all = append(all, task.Pausable{Group: campaign})
	}
	for _, what := range all {
		if what == (task.Pausable{}) {
			return nil, cli.Usagef("empty name of a queue or campaign; to pause or resume all tasks, use --all")
		}
		if err := what.Check(); err != nil {
			return nil, cli.Usagef("%v", err)
		}
	}
	if p.all {
		all = append(all, task.Everything)
	}
	return all, nil
}

func Pause(a *cli.App) *cobra.Command {
	p := &pausables{}
	c := &cobra.Command{
		Use: "pause", Short: "Stop workers from claiming the tasks of a queue or campaign",
		Long: "Stops workers from claiming the tasks of queues, campaigns, or the whole namespace. When the command " +
			"returns, no worker claims such a task any\n" +
			"more. Running tasks go on. tdf resume ends the pause. Without flags, the command lists the programs that " +
			"are held because they cannot be\n" +
			"started, what is paused, and the campaigns that will be paused after failures (tdf open --halt).",
		Example: "  tdf pause --campaign night\n  tdf pause --queue crawl",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			what, err := p.read()
			if err != nil {
				return err
			}
			return a.WithShards(c.Context(), func(s *cli.Shards) error {
				if len(what) == 0 {
					return s.Each(func(m *manager.Manager) error { return listPaused(c.Context(), a, m) })
				}
				err := s.Each(func(m *manager.Manager) error { return m.Pauses().Begin(c.Context(), what...) })
				if err != nil {
					return err
				}
				sayEach(a, what, "paused")
				return nil
			})
		},
	}
	p.flags(c)
	return c
}

func Resume(a *cli.App) *cobra.Command {
	p := &pausables{}
	c := &cobra.Command{
		Use: "resume", Short: "End a pause",
		Long: "Ends pauses of tdf pause and tdf open --halt. The tasks have kept their order. A campaign is then " +
			"no longer paused after failures.",
		Example: "  tdf resume --campaign night\n  tdf resume --queue crawl",
		Args: func(_ *cobra.Command, names []string) error {
			if len(names) > 0 {
				return cli.Usagef("%q: name a queue or a campaign with --queue or --campaign; to end the drain of a "+
					"worker, use tdf drain --undo NAME", names[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			what, err := p.read()
			if err != nil {
				return err
			}
			if len(what) == 0 {
				return cli.Usagef(
					"nothing to resume; use --queue, --campaign or --all, and tdf pause to list what is paused")
			}
			return a.WithShards(c.Context(), func(s *cli.Shards) error {
				err := s.Each(func(m *manager.Manager) error { return m.Pauses().End(c.Context(), what...) })
				if err != nil {
					return err
				}
				sayEach(a, what, "resumed")
				return s.Each(func(m *manager.Manager) error { return sayStillPaused(c.Context(), a, m) })
			})
		},
	}
	p.flags(c)
	return c
}

// sayStillPaused names other pauses, because they may keep the same tasks from running.
func sayStillPaused(ctx context.Context, a *cli.App, m *manager.Manager) error {
	const named = 5
	paused, err := m.Pauses().All(ctx)
	for i, p := range paused {
		if i == named {
			a.Say("%d more are still paused: tdf pause lists them", len(paused)-named)
			break
		}
		a.Say("still paused: %s", p.Text())
	}
	return err
}

func sayEach(a *cli.App, what []task.Pausable, state string) {
	for _, p := range what {
		a.Say("%s: %s", p.Text(), state)
	}
}

func listPaused(ctx context.Context, a *cli.App, m *manager.Manager) error {
	paused, err := m.Pauses().All(ctx)
	if err != nil {
		return err
	}
	halts, err := m.Pauses().Halts(ctx)
	if err != nil {
		return err
	}
	held, err := admin.New(m).HeldPrograms(ctx)
	if err != nil {
		return err
	}
	if len(paused) == 0 {
		a.Say("nothing is paused")
	}
	for _, p := range append(paused, halts...) {
		line := fmt.Sprintf("%s: paused by %s since %s", p.Text(), p.By, cli.Clock(p.Since))
		if p.Failures > 0 {
			line = fmt.Sprintf("%s: will be paused; ordered by %s at %s", p.Text(), p.By, cli.Clock(p.Since))
		}
		held = append(held, line)
	}
	for _, line := range held {
		if _, err := fmt.Fprintln(a.Stdout, format.OneLine(line, 0)); err != nil {
			return err
		}
	}
	return nil
}
