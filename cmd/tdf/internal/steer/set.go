package steer

import (
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

func Set(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, changes: &cli.Changes{}, verb: tdf.VerbChange, past: "changed", states: []tdf.State{tdf.Open},
		scope: "tdf set applies to open tasks; tdf retry can change finished tasks",
	}
	c := s.command(&cobra.Command{
		Use: "set", Short: "Change properties of open tasks",
		Long:    "Changes properties of open tasks. The tasks keep their places in the queue, unless --start-after moves them.",
		Example: "  tdf set --campaign grid --timeout 10m --max-fails 2",
	})
	s.changes.AddTo(c)
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !s.changes.Given() {
			return cli.Usagef("nothing to set: want a flag such as --input, --timeout or --program; tdf set --help lists them")
		}
		return run(c, args)
	}
	return c
}
