package main

import (
	"github.com/spf13/cobra"
)

func newDump(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "dump", Short: "Write the whole namespace to stdout",
		Long: "Writes the namespace as JSON lines: its tasks with their outputs, and its stored programs. Tasks may change during the dump: each\n" +
			"task is consistent, but the command reads different tasks at different times.",
		Example: "  tdf dump | gzip > project.dump.gz",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.terminal.out {
				return usage("write dump: stdout is a terminal; use tdf dump > FILE")
			}
			return a.withManager(c.Context(), func(m *client) error {
				done, err := m.admin().Dump(c.Context(), a.stdout)
				if err == nil {
					a.say("dumped %s and %s", tasks(done.Tasks), counted(done.Programs, "program"))
				}
				return err
			})
		},
	}
}
