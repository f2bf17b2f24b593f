package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

// pathCommands and pathFlags are the commands and flags whose values are files or directories. Shells
// complete file names only for these values.
var (
	pathCommands = []string{"push", "load"}
	pathFlags    = []string{"config", "from", "program", "data", "directory", "output"}
)

// completionLimit is the maximum time for which a shell waits for values from Redis.
const completionLimit = 2 * time.Second

// CompleteValues makes shells complete the values of a command's flags and arguments.
func (a *App) CompleteValues(c *cobra.Command) {
	fromRedis := a.redisFlags()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if values := flagValues[f.Name]; values != nil {
			// fails only if the flag already has a completion function
			_ = c.RegisterFlagCompletionFunc(f.Name, completeListed(values))
		}
		if complete := fromRedis[f.Name]; complete != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, complete)
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

// redisFlags returns completion functions for the flags whose values are read from Redis. The functions ignore the
// arguments of the command.
func (a *App) redisFlags() map[string]cobra.CompletionFunc {
	withoutArgs := func(complete cobra.CompletionFunc) cobra.CompletionFunc {
		return func(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return complete(c, nil, typed)
		}
	}
	return map[string]cobra.CompletionFunc{
		"worker": withoutArgs(a.CompleteWorkers), "campaign": withoutArgs(a.CompleteCampaign),
		"group": withoutArgs(a.CompleteCampaign),
		"of":    withoutArgs(a.complete(newestNames(programOf))), "failure": withoutArgs(a.complete(failureIDs)),
	}
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
	"fail-on": {string(tdf.FailOnStderr), string(tdf.FailOnExit), string(tdf.FailOnAny)},
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

// complete returns a completion function, which offers values that it reads from Redis. It leaves out values that the
// command line already contains, and values with control characters. In a value, a description may follow after a tab.
func (a *App) complete(read func(context.Context, *Client, *cobra.Command) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
		defer cancel()
		var all []string
		_ = a.WithManager(ctx, func(m *Client) error { // if Redis cannot be reached, nothing is completed
			for _, value := range read(ctx, m, c) {
				word, _, _ := strings.Cut(value, "\t")
				if word != "" && format.Printable(value) == value && !strings.Contains(value, "\n") &&
					!slices.Contains(args, word) {
					all = append(all, value)
				}
			}
			return nil
		})
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// sampled is the number of tasks of each state that shell completion reads to find the names of programs. Redis has no
// list of these names.
const sampled = 1000

// newestNames returns the distinct names of the newest tasks, the newest first.
func newestNames(name func(*manager.Task) string) func(context.Context, *Client, *cobra.Command) []string {
	return func(ctx context.Context, m *Client, _ *cobra.Command) []string {
		var all []string
		// one sample for each state, because a large campaign rarely fills the samples of all states
		for _, state := range tdf.States {
			page, err := m.Page(ctx, manager.Query{States: []tdf.State{state}}, "", sampled)
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

func programOf(t *manager.Task) string { return t.Program }

// failureIDs returns the ids of the failure groups, each with a description.
func failureIDs(ctx context.Context, m *Client, c *cobra.Command) []string {
	campaign, _ := c.Flags().GetString("campaign")
	page, _ := m.Admin().Failures(ctx, manager.Query{Group: campaign}, "")
	var all []string
	for _, g := range page.Groups {
		all = append(all, g.ID+"\t"+format.OneLine(g.How+" "+g.Line, 60))
	}
	return all
}

// storedSources returns the sources of the stored programs, each with its size.
func storedSources(ctx context.Context, m *Client, _ *cobra.Command) []string {
	stored, _ := program.List(ctx, m.Manager)
	var all []string
	for _, p := range stored {
		all = append(all, RedisSource+p.SHA256+"\t"+format.Size(p.Bytes))
	}
	return all
}

// CompletePrograms completes the sources of stored programs.
func (a *App) CompletePrograms(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.complete(storedSources)(c, args, typed)
}

// CompleteCampaign completes the argument CAMPAIGN.
func (a *App) CompleteCampaign(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(func(ctx context.Context, m *Client, _ *cobra.Command) (names []string) {
		page, _ := m.GroupPage(ctx, typed, "", sampled)
		for _, g := range page.Groups {
			names = append(names, g.Name)
		}
		return names
	})(c, nil, typed)
}

// CompletePeriodic completes the name of a periodic.
func (a *App) CompletePeriodic(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(func(ctx context.Context, m *Client, _ *cobra.Command) (names []string) {
		all, _ := m.Periodics(ctx)
		for _, r := range all {
			names = append(names, r.Name)
		}
		return names
	})(c, nil, typed)
}

// CompleteWorkers completes the names of workers.
func (a *App) CompleteWorkers(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.complete(workerNames)(c, args, typed)
}

func workerNames(ctx context.Context, m *Client, _ *cobra.Command) []string {
	workers, _ := m.Admin().Workers(ctx)
	var names []string
	for _, w := range workers {
		names = append(names, w.Name)
	}
	return names
}

// RedisSource is the prefix of the source of a stored program.
const RedisSource = "redis:"
