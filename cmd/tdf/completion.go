package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Write what has a shell complete commands and flags",
		Long: "Writes a script for bash, zsh, fish or powershell. For this session: source <(tdf completion bash). For all to come:\n" +
			"bash: into /etc/bash_completion.d/tdf (the package bash-completion is needed); zsh: into _tdf in a directory of $fpath;\n" +
			"fish: into ~/.config/fish/completions/tdf.fish; powershell: into the profile.",
		Example:   "  tdf completion bash > /etc/bash_completion.d/tdf",
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usage("for which shell? One of %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
		},
	}
}

// Commands whose arguments are files or directories.
var pathCommands = []string{"push", "load"}

// completeValues has a shell offer the values that flags and arguments may have, and files only where these are meant.
func (a *app) completeValues(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if values := flagValues[f.Name]; values != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, completeListed(values)) // an error: there is one
		}
		if f.Name == "worker" {
			_ = c.RegisterFlagCompletionFunc(f.Name, a.completeWorker)
		}
	})
	completeNoFiles(c)
	if c.ValidArgs == nil && c.ValidArgsFunction == nil && !slices.Contains(pathCommands, c.Name()) {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// completeGlobalFlags does so for the flags that all commands have.
func completeGlobalFlags(root *cobra.Command) {
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(pathFlags, f.Name) {
			_ = root.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // an error: there is one
		}
	})
}

// flagValues are those of flags that have a fixed set.
var flagValues = map[string][]string{
	"state": stateValues(), "outcome": outcomeValues(), "format": {"csv", "jsonl"},
	"fail-on": {string(tdf.FailOnStderr), string(tdf.FailOnExit), string(tdf.FailOnAny)},
}

func stateValues() []string {
	var all []string
	for _, s := range tdf.States {
		all = append(all, string(s))
	}
	return all
}

func outcomeValues() []string {
	var all []string
	for _, s := range tdf.States {
		if s.Judged() {
			all = append(all, string(s))
		}
	}
	return append(all, tdf.Cancelled)
}

// completeListed offers what may follow after a comma, too: but for what stands before it.
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

// completeWorker offers all workers; the arguments before it are none.
func (a *app) completeWorker(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.completeWorkers(c, nil, typed)
}
