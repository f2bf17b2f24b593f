package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/command"
)

// wrongFlag is for flags that there are not, or whose values make no sense.
func wrongFlag(c *cobra.Command, err error) error {
	what := err.Error()
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) && kinds[wrong.GetFlag().Value.Type()] != "" {
		what = fmt.Sprintf("--%s %q is no %s", wrong.GetFlag().Name, wrong.GetValue(), kinds[wrong.GetFlag().Value.Type()])
	}
	return usage("%s; %s --help lists the flags", what, c.CommandPath())
}

// kinds are what flags take, in words.
var kinds = map[string]string{
	"int": "whole number", "int64": "whole number", "duration": "span such as 90s or 2h30m", "bool": "truth value, true or false",
}

// notUnderstood says where the commands are listed if there is none of the name that was typed.
func notUnderstood(err error) error {
	if errors.As(err, new(*command.UsageError)) {
		return err
	}
	what, alike, _ := strings.Cut(err.Error(), suggestions)
	if names := strings.Fields(alike); len(names) > 0 {
		what += "; did you mean " + strings.Join(names, " or ") + "?"
	} else {
		what += ";"
	}
	return usage("%s tdf --help lists the commands", what)
}

// suggestions are what cobra puts between a name that there is not and those that are like it.
const suggestions = "\n\nDid you mean this?\n"

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
