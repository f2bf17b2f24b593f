package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/command"
)

// An app holds the state of one call of tdf: input, output, and the flags that all commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       terminal
	force          context.Context // ends at the second signal
	log            *slog.Logger

	file      string   // --config
	namespace string   // --namespace
	redis     string   // --redis
	set       []string // --set
	parsed    bool     // whether the arguments are valid for the command

	grace atomic.Int64 // how long the command may still run after a signal, as a [time.Duration]
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr, force: context.Background(),
		terminal: newTerminal(stdout, stderr), log: slog.New(warningsTo(stderr)),
	}
	a.grace.Store(int64(usualGrace))
	return a
}

// warningsTo returns a log handler that writes only warnings and errors. Its lines contain no time and no level.
func warningsTo(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		},
	})
}

// root returns the command tdf with all its subcommands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "tdf",
		Short:             "Open, watch, explain and steer tasks",
		Version:           command.Version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.begin,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	setUsageTemplate(root)
	flags := root.PersistentFlags()
	flags.StringVar(&a.file, "config", "", "`FILE` configuration file (default: $TDF_CONFIG, else ./tdf.cfg if it exists)")
	flags.StringVar(&a.namespace, "namespace", "", "`NAME` namespace of the project (instead of [tdf] namespace)")
	flags.StringVar(&a.redis, "redis", "", "`HOST[:PORT]` address of Redis (instead of [redis] host and port)")
	flags.StringArrayVar(&a.set, "set", nil, "`SECTION.KEY=VALUE` value for any other configuration key")
	completeGlobalFlags(root)
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, newCommand := range g.commands {
			c := newCommand(a)
			c.GroupID = g.id
			a.completeValues(c)
			root.AddCommand(c)
		}
	}
	return root
}

// begin runs before every command. It refuses empty arguments and flag values, because they probably come from unset shell
// variables.
func (a *app) begin(c *cobra.Command, args []string) error {
	a.parsed = true
	if c.Name() == "up" { // tdf up lets running programs finish before it ends
		a.grace.Store(int64(noLimit))
	}
	if strings.HasPrefix(c.Name(), cobra.ShellCompRequestCmd) {
		return nil
	}
	if slices.Contains(args, "") {
		return usage("empty argument for %s", c.CommandPath())
	}
	var empty []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" && !slices.Contains(mayBeEmpty, f.Name) {
			empty = append(empty, "--"+f.Name)
		}
	})
	if len(empty) > 0 {
		return usage("empty value for %s: give a value, or leave the flag out", strings.Join(empty, ", "))
	}
	return nil
}

// mayBeEmpty lists the flags whose value may be the empty string.
var mayBeEmpty = []string{"input", "meta", "tags", "limit-key"}

// A group is a section of tdf --help, with the commands that the section lists.
type group struct {
	id, title string
	commands  []func(*app) *cobra.Command
}

var groups = []group{
	{"open", "Open tasks:", []func(*app) *cobra.Command{newOpen, newPush}},
	{"look", "Inspect:", []func(*app) *cobra.Command{newWatch, newLs, newShow, newOutput, newUpdates, newFailures, newExplain, newResults, newWorkers}},
	{"steer", "Steer:", []func(*app) *cobra.Command{newRetry, newCancel, newArchive, newRemove, newRequeue, newSet, newPause, newResume, newClose, newLimit, newDrain, newPrograms}},
	{"operate", "Operate:", []func(*app) *cobra.Command{newUp, newStats, newSettings, newDoctor, newCheck, newDump, newLoad, newCompletion}},
}

// say writes a message to stderr. It escapes control characters, because the message may contain texts from Redis.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stderr, printable(fmt.Sprintf(format, args...)))
}
