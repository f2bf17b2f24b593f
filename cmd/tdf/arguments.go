package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// atMostOne is for commands that take one argument, or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage("%s takes one %s, and got %q as well", c.CommandPath(), what, args[1])
		}
		return nil
	}
}

// one is for commands that need one argument and take no other.
func one(what string) cobra.PositionalArgs {
	return cobra.MatchAll(someArguments(what), atMostOne(what))
}

// Flags whose values are files or directories: shells complete these, and no others.
var pathFlags = []string{"config", "from", "program", "data", "directory", "output"}

// completeNoFiles keeps shells from offering files where none are meant.
func completeNoFiles(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(pathFlags, f.Name) && f.Value.Type() != "bool" {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // an error: there is one
		}
	})
}
