package steer

import (
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

func Rm(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, verb: tdf.VerbRemove, past: "removed", states: finished,
		scope: "tdf rm applies to finished tasks; cancel others first with tdf cancel",
	}
	return s.command(&cobra.Command{
		Use: "rm", Short: "Remove finished tasks and their outputs",
		Long: "Removes finished tasks from Redis, with their properties, outputs, logs and updates. Only a dump can restore them.\n" +
			"The command does not remove output files on the workers. Settings of [worker] limit how long workers keep these files.",
		Example: "  tdf rm --campaign grid --state archived --older-than 720h",
	})
}
