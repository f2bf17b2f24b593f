package steer

import (
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

func Cancel(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, verb: tdf.VerbCancel, past: "cancelled", states: []tdf.State{tdf.Open, tdf.Running},
		scope: "tdf cancel applies to open and running tasks",
	}
	return s.command(&cobra.Command{
		Use: "cancel", Short: "Cancel open and running tasks",
		Long: "Cancels open and running tasks. Their state becomes expired, and their outcome cancelled. If a task is running, its\n" +
			"worker ends the program.",
		Example: "  tdf cancel --campaign grid --state open",
	})
}
