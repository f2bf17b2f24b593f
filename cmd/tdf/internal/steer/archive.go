package steer

import (
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

func Archive(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, verb: tdf.VerbArchive, past: "archived", states: finished[:4],
		scope: "tdf archive applies to tasks that succeeded, failed, timed out or expired",
	}
	return s.command(&cobra.Command{
		Use: "archive", Short: "Archive finished tasks",
		Long: "Archives tasks that succeeded, failed, timed out or expired. A manager archives its tasks itself, after the callback has returned.\n" +
			"Use this command for tasks that no manager handles. Archived tasks keep their outputs.",
		Example: "  tdf archive --campaign grid --state succeeded",
	})
}
