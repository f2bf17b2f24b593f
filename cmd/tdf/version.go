package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/command"
)

func newVersion(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of tdf",
		Long: "Prints the number of the release. If tdf was built in a clone, the commit follows after a plus sign,\n" +
			"and .dirty if the clone had changes.",
		Example: "  tdf version\n  ssh node-7 tdf version",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(a.Stdout, "tdf", command.Version())
			return err
		},
	}
}
