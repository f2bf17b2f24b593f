package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/internal/task"
)

// pathCommands and pathFlags are the commands and flags whose values are files or directories. Shells
// complete file names only for these values.
var (
	pathCommands = []string{"push"}
	pathFlags    = []string{"config", "from", "program", "data", "directory", "output"}
)

// CompleteValues makes shells complete the values of a command's flags and arguments.
func CompleteValues(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if values := flagValues[f.Name]; values != nil {
			// fails only if the flag already has a completion function
			_ = c.RegisterFlagCompletionFunc(f.Name, completeListed(values))
		}
	})
	completeNoFiles(c)
	if c.ValidArgs == nil && c.ValidArgsFunction == nil && !slices.Contains(pathCommands, c.Name()) {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// completeNoFiles keeps shells from completing file names for flags whose values are not files.
func completeNoFiles(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(pathFlags, f.Name) && f.Value.Type() != "bool" {
			// fails only if the flag already has a completion function
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
}

// CompleteGlobalFlags does the same as completeNoFiles, for the flags that all commands share.
func CompleteGlobalFlags(root *cobra.Command) {
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(pathFlags, f.Name) {
			// fails only if the flag already has a completion function
			_ = root.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
}

// flagValues lists the values of each flag that accepts only certain words.
var flagValues = map[string][]string{
	"state": selection.States(), "outcome": selection.Outcomes(), "format": {"csv", "jsonl"}, "role": access.Roles(),
	"fail-on": {string(task.FailOnStderr), string(task.FailOnExit), string(task.FailOnAny)},
}

// completeListed completes a comma-separated list of values. It does not offer a value that is already in the list.
func completeListed(values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var all []string
		for _, v := range values {
			if !slices.Contains(strings.Split(before, ","), v) {
				all = append(all, before+v)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// RedisSource is the prefix of the source of a stored program.
const RedisSource = "redis:"
