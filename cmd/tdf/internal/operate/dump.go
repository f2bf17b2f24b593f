package operate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
)

// dumpedText lists the contents of a dump, such as "2 tasks and 1 program".
func dumpedText(d admin.Dumped) string {
	if d.Values == 0 {
		return format.Tasks(d.Tasks) + " and " + format.Counted(d.Programs, "program")
	}
	return fmt.Sprintf("%s, %s and %s", format.Tasks(d.Tasks), format.Counted(d.Programs, "program"),
		format.Counted(d.Values, "other value"))
}

func Dump(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "dump", Short: "Write the whole namespace to stdout",
		Long: "Writes the namespace as JSON lines: its tasks with their outputs, its stored programs, its settings, " +
			"pauses and limits, its closed\n" +
			"campaigns and its pipelines. Tasks may change during the dump: each task is consistent, but the " +
			"command reads different tasks at\n" +
			"different times.",
		Example: "  tdf dump | gzip > project.dump.gz\n  tdf dump | ssh backup 'cat > project.dump'",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.Terminal.Out {
				return cli.Usagef("write dump: stdout is a terminal; use tdf dump > FILE")
			}
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				done, err := m.Admin().Dump(c.Context(), a.Stdout)
				if err != nil {
					return err
				}
				a.Say("dumped %s", dumpedText(done))
				return nil
			})
		},
	}
}
