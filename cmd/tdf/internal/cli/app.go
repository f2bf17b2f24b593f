package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/format"
)

// A Process is what a call of tdf gets from its process. Tests run many calls in one process at the same time, so
// commands do not use the environment, the working directory and the standard streams of the process itself. Only
// internal/localpass does, when it looks for a password of tdf up.
type Process struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string        // environment variables, as "NAME=value"
	Dir            string          // directory of relative paths; "" is the working directory of the process
	Force          context.Context // ends at the second signal; nil means never
}

// Getenv returns the value of an environment variable, or "" if it is not set.
func (p *Process) Getenv(name string) string {
	for _, variable := range slices.Backward(p.Env) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// Path returns the path of a file that the user names. It returns "" for "".
func (p *Process) Path(name string) string {
	if p.Dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Dir, name)
}

// An App holds the state of one call of tdf: its process, and the flags that all commands share.
type App struct {
	Process
	Terminal Terminal
	Log      *slog.Logger

	File      string   // --config
	Namespace string   // --namespace
	Redis     string   // --redis
	Set       []string // --set
	parsed    bool     // whether the arguments are valid for the command

	look  atomic.Value // the text of a command that shows what the command has changed, or ""
	grace atomic.Int64 // how long the command may still run after a signal, as a [time.Duration]
}

func New(p Process) *App {
	if p.Force == nil {
		p.Force = context.Background()
	}
	a := &App{Process: p, Terminal: newTerminal(&p), Log: slog.New(warningsTo(p.Stderr))}
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

// Begin runs before every command. It refuses empty arguments and flag values, because they probably come from unset
// shell variables.
func (a *App) Begin(c *cobra.Command, args []string) error {
	a.parsed = true
	a.look.Store(looks[strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")])
	if c.Name() == "up" { // tdf up lets running programs finish before it ends
		a.grace.Store(int64(noLimit))
	}
	if strings.HasPrefix(c.Name(), cobra.ShellCompRequestCmd) {
		return nil
	}
	err := refuseEmpty(c, args)
	// the statuses from 1 to 101 are those of commands
	if c.Name() == "run" && !c.Parent().HasParent() || c.Name() == "wait" {
		return Exit(err)
	}
	return err
}

func refuseEmpty(c *cobra.Command, args []string) error {
	if slices.Contains(args, "") && c.Name() != "run" && c.Name() != "slurm" { // their commands' arguments may be empty
		return Usagef("empty argument for %s", c.CommandPath())
	}
	var empty []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" && !slices.Contains(mayBeEmpty, f.Name) {
			empty = append(empty, "--"+f.Name)
		}
	})
	if len(empty) > 0 {
		return Usagef("empty value for %s: give a value, or leave the flag out", strings.Join(empty, ", "))
	}
	return nil
}

// mayBeEmpty lists the flags whose value may be the empty string.
var mayBeEmpty = []string{"input", "meta", "tags", "limit-key", "resources"}

// Say writes a message to stderr. It escapes control characters, because the message may contain texts from Redis.
func (a *App) Say(text string, args ...any) {
	fmt.Fprintln(a.Stderr, format.Printable(fmt.Sprintf(text, args...)))
}

// Remark does the same as Say, but only for a person at a terminal: not in a cron job, whose owner would get a mail.
func (a *App) Remark(text string, args ...any) {
	if a.Terminal.Err {
		a.Say(text, args...)
	}
}
