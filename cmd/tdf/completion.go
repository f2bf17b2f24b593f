package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/program"
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
		if offered := a.flagsOfTheNamespace()[f.Name]; offered != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, offered)
		}
	})
	completeNoFiles(c)
	if c.ValidArgs == nil && c.ValidArgsFunction == nil && !slices.Contains(pathCommands, c.Name()) {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// flagsOfTheNamespace are those whose values are found in Redis. Arguments before them do not matter.
func (a *app) flagsOfTheNamespace() map[string]cobra.CompletionFunc {
	alone := func(offered cobra.CompletionFunc) cobra.CompletionFunc {
		return func(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return offered(c, nil, typed)
		}
	}
	return map[string]cobra.CompletionFunc{
		"worker": a.completeWorker, "campaign": alone(a.completeCampaign), "group": alone(a.completeCampaign),
		"of": alone(a.complete(named(programOf))), "failure": alone(a.complete(completeFailures)),
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
		if s.Settled() {
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

// complete offers what read finds in the namespace, in the time that a shell waits. A value with control characters is left out.
func (a *app) complete(read func(context.Context, *client, *cobra.Command) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionBound)
		defer cancel()
		m, err := a.manager(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer m.Close()
		var offered []string
		for _, value := range read(ctx, m, c) {
			word, _, _ := strings.Cut(value, "\t")
			if word != "" && printable(strings.ReplaceAll(value, "\t", " ")) == strings.ReplaceAll(value, "\t", " ") && !slices.Contains(args, word) {
				offered = append(offered, value)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// sampled is how many of the newest tasks tell which campaigns and programs there are. No list has these names.
const sampled = 1000

// named returns what the newest tasks are called by name, each once, the newest first.
func named(name func(*tdf.Task) string) func(context.Context, *client, *cobra.Command) []string {
	return func(ctx context.Context, m *client, _ *cobra.Command) []string {
		var all []string
		for _, state := range tdf.States { // each has its own newest: a large campaign fills one state, and seldom all
			page, err := m.find(ctx, taskQuery{States: []tdf.State{state}}, "", sampled)
			if err != nil {
				return all
			}
			for _, t := range page.Tasks {
				if n := name(t); !slices.Contains(all, n) {
					all = append(all, n)
				}
			}
		}
		return all
	}
}

func campaignOf(t *tdf.Task) string { return t.Group }
func programOf(t *tdf.Task) string  { return t.Program }

// completeFailures offers groups of failures, with how they ended.
func completeFailures(ctx context.Context, m *client, c *cobra.Command) []string {
	campaign, _ := c.Flags().GetString("campaign")
	found, _ := m.failures(ctx, taskQuery{Group: campaign}, "")
	var all []string
	for _, g := range found.Groups {
		all = append(all, g.ID+"\t"+oneLine(g.How+" "+g.Line, 60))
	}
	return all
}

func storedNames(ctx context.Context, m *client, _ *cobra.Command) []string {
	stored, _ := program.List(ctx, m.Manager)
	var all []string
	for _, p := range stored {
		all = append(all, redisSource+p.SHA256+"\t"+size(p.Bytes))
	}
	return all
}

// completePrograms offers stored programs.
func (a *app) completePrograms(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.complete(storedNames)(c, args, typed)
}

// completeCampaign offers campaigns for a command that takes one.
func (a *app) completeCampaign(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(named(campaignOf))(c, nil, typed)
}
