package main

import (
	"github.com/spf13/cobra"
)

// noArguments is for commands that take flags only.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no argument, and got %q", c.CommandPath(), args[0])
	}
	return nil
}

// someArguments is for commands that need one argument, or more.
func someArguments(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("%s needs %s: %s", c.CommandPath(), what, c.UseLine())
		}
		return nil
	}
}
