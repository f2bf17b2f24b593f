package steer

import (
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

func Requeue(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, verb: tdf.VerbRelease, past: "requeued", states: []tdf.State{tdf.Running},
		scope: "tdf requeue applies to running tasks",
	}
	c := s.command(&cobra.Command{
		Use: "requeue", Short: "Take running tasks from their workers and run them again",
		Long: "Takes running tasks from their workers. The tasks are open again, at the end of the queue. A worker ends the program of a requeued task\n" +
			"when the worker next renews its leases. The round does not count as a failure.",
		Example: "  tdf requeue --worker node-7 --elsewhere",
	})
	c.Flags().BoolVar(&s.elsewhere, "elsewhere", false, "next round on any worker except the current one")
	return c
}
