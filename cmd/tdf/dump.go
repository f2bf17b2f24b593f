package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/admin"
)

// dumpedText lists the contents of a dump, such as "2 tasks and 1 program".
func dumpedText(d admin.Dumped) string {
	if d.Values == 0 {
		return tasks(d.Tasks) + " and " + counted(d.Programs, "program")
	}
	return fmt.Sprintf("%s, %s and %s", tasks(d.Tasks), counted(d.Programs, "program"), counted(d.Values, "other value"))
}

func newDump(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "dump", Short: "Write the whole namespace to stdout",
		Long: "Writes the namespace as JSON lines: its tasks with their outputs, its stored programs, its settings, pauses and limits, its closed\n" +
			"campaigns and its pipelines. Tasks may change during the dump: each task is consistent, but the command reads different tasks at\n" +
			"different times.",
		Example: "  tdf dump | gzip > project.dump.gz",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.terminal.out {
				return usage("write dump: stdout is a terminal; use tdf dump > FILE")
			}
			return a.withManager(c.Context(), func(m *client) error {
				done, err := m.admin().Dump(c.Context(), a.stdout)
				if err == nil {
					a.say("dumped %s", dumpedText(done))
				}
				return err
			})
		},
	}
}
