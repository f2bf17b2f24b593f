package main

import (
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/look"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/open"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/operate"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/run"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/scale"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/slurm"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/steer"
	"github.com/tdf-framework/tdf/internal/command"
)

// newRoot returns the command tdf with all its subcommands.
func newRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:               "tdf",
		Short:             "Open, watch, explain and steer tasks",
		Version:           command.Version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.Begin,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(cli.FlagError)
	cli.SetUsageTemplate(root)
	flags := root.PersistentFlags()
	flags.StringVar(&a.File, "config", "",
		"`FILE` configuration file (default: $TDF_CONFIG, else ./tdf.cfg if it exists)")
	flags.StringVar(&a.Namespace, "namespace", "", "`NAME` namespace of the project (instead of [tdf] namespace)")
	flags.StringVar(&a.Redis, "redis", "", "`HOST[:PORT]` address of Redis (instead of [redis] host and port)")
	flags.StringArrayVar(&a.Set, "set", nil, "`SECTION.KEY=VALUE` value for any other configuration key")
	cli.CompleteGlobalFlags(root)
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, newCommand := range g.commands {
			c := newCommand(a)
			c.GroupID = g.id
			cli.CompleteValues(c)
			root.AddCommand(c)
		}
	}
	return root
}

// A group is a section of tdf --help, with the commands that the section lists.
type group struct {
	id, title string
	commands  []func(*cli.App) *cobra.Command
}

var groups = []group{
	{"open", "Open tasks:", []func(*cli.App) *cobra.Command{run.Run, open.Open, open.Push, slurm.Commands, slurm.Slurm}},
	{"look", "Inspect:", []func(*cli.App) *cobra.Command{
		look.Watch, run.Wait, run.State, look.Ls, look.Show, look.Output, look.Updates,
		look.Campaigns, look.Queues, look.Failures, look.Explain, look.Results, look.Workers, look.Notices,
	}},
	{"steer", "Steer:", []func(*cli.App) *cobra.Command{
		steer.Retry, steer.Cancel, steer.Archive, steer.Rm,
		steer.Requeue, steer.Set, steer.Pause, steer.Resume, steer.Close, steer.Limit, steer.Periodic, steer.Drain,
		steer.Programs,
	}},
	{"operate", "Operate:", []func(*cli.App) *cobra.Command{
		operate.Up, operate.Login, operate.Serve, scale.Scale, operate.Stats, operate.Settings,
		operate.Token, operate.User, operate.Doctor, operate.Check, newCompletion, newVersion,
	}},
}
