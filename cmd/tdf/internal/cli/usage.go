package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Usagef returns an error about the arguments.
func Usagef(text string, args ...any) error {
	return &command.UsageError{Problem: fmt.Sprintf(text, args...)}
}

// A Want is the error of a flag's value: it says which values are valid.
type Want string

func (w Want) Error() string { return "want " + string(w) }

// FlagError returns the error for an unknown flag or an invalid value.
func FlagError(c *cobra.Command, err error) error {
	problem := err.Error()
	var invalid *pflag.InvalidValueError
	var want Want
	if errors.As(err, &invalid) && errors.As(err, &want) {
		return Usagef("invalid value %q for --%s: want %s; %s --help lists the flags", invalid.GetValue(),
			invalid.GetFlag().Name, string(want), c.CommandPath())
	}
	if errors.As(err, &invalid) && wants[invalid.GetFlag().Value.Type()] != "" {
		problem = fmt.Sprintf("invalid value %q for --%s: want %s", invalid.GetValue(), invalid.GetFlag().Name,
			wants[invalid.GetFlag().Value.Type()])
	}
	return Usagef("%s; %s --help lists the flags", problem, c.CommandPath())
}

// wants maps each type of flags to a description of the valid values.
var wants = map[string]string{
	"int": "a whole number", "int64": "a whole number", "duration": "a duration such as 90s or 2h30m",
	"bool": "true or false",
}

// commandError returns the error for an unknown command. The error suggests commands with similar names.
func commandError(err error) error {
	if errors.As(err, new(*command.UsageError)) {
		return err
	}
	problem, similar, _ := strings.Cut(err.Error(), suggestions)
	if names := strings.Fields(similar); len(names) > 0 {
		problem += "; did you mean " + strings.Join(names, " or ") + "?"
	} else {
		problem += ";"
	}
	return Usagef("%s tdf --help lists the commands", problem)
}

// suggestions is the text that cobra puts between an unknown command and the commands with similar names.
const suggestions = "\n\nDid you mean this?\n"

// NoArguments refuses any argument, for commands that accept only flags.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q for %s: want no arguments", args[0], c.CommandPath())
	}
	return nil
}

// SomeArguments requires at least one argument.
func SomeArguments(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("missing argument for %s: want %s; usage: %s", c.CommandPath(), name, c.UseLine())
		}
		return nil
	}
}

// AtMostOne refuses a second argument.
func AtMostOne(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usagef("unexpected argument %q for %s: want one %s", args[1], c.CommandPath(), name)
		}
		return nil
	}
}

// ExactlyOne requires one argument.
func ExactlyOne(name string) cobra.PositionalArgs {
	return cobra.MatchAll(SomeArguments(name), AtMostOne(name))
}

// SetUsageTemplate changes how --help prints a flag. If the flag's text begins with a name in back-quotes, --help
// prints "--flag NAME   text". Without this, cobra repeats the name in the text.
func SetUsageTemplate(root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages", "flagUsages .LocalFlags",
		".InheritedFlags.FlagUsages", "flagUsages .InheritedFlags",
	).Replace(root.UsageTemplate()))
}

// All roots share cobra's map of these functions.
func init() { cobra.AddTemplateFunc("flagUsages", flagUsages) }

func flagUsages(flags *pflag.FlagSet) string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	shown.SortFlags = flags.SortFlags
	flags.VisitAll(func(f *pflag.Flag) {
		if quoted, ok := strings.CutPrefix(f.Usage, "`"); ok {
			name, text, _ := strings.Cut(quoted, "` ")
			named := *f
			named.Usage, named.Value = text, namedValue{f.Value, name}
			named.DefValue = strings.TrimPrefix(f.DefValue, "[]") // do not show the empty default of a list
			f = &named
		}
		shown.AddFlag(f)
	})
	return shown.FlagUsages()
}

// A namedValue is a flag's value with a name, which --help prints as the flag's type.
type namedValue struct {
	pflag.Value
	name string
}

func (v namedValue) Type() string { return v.name }

// Exit statuses (docs/tdf.md, "Exit status").
const (
	statusDone        = 0
	StatusFailed      = 1
	StatusRefused     = 2 // the arguments or the configuration are invalid, or Redis refuses them
	statusProblems    = 3 // the command ran, and found problems or skipped tasks
	StatusInterrupted = 130

	// The exit statuses of tdf run from 1 to statusMany say how many tasks failed.
	statusMany     = 101 // more than 100
	statusPart     = 102 // none failed, but tdf run has not got all outputs and files
	statusVanished = 103 // tasks vanished before tdf run had read their results
	statusPipe     = 141 // nothing reads stdout any more; shells report SIGPIPE so
	statusNotRun   = 125 // tdf run itself failed; env, timeout and docker run also use this status
)

// TasksFailed is the error of tdf run if some tasks did not succeed. The command must print why before it returns the
// error.
type TasksFailed int

func (n TasksFailed) Error() string { return format.Tasks(int(n)) + " failed" }

// An ExitStatus is the error of a command that exits with this status. The command must print why before it returns the
// error.
type ExitStatus int

func (n ExitStatus) Error() string { return fmt.Sprint("exit status ", int(n)) }

// A runError is an error of tdf run itself.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// Exit makes tdf exit with the status of tdf run for an error.
func Exit(err error) error {
	if err == nil || errors.As(err, new(TasksFailed)) || errors.As(err, new(ExitStatus)) ||
		errors.Is(err, ErrPart) || errors.Is(err, ErrVanished) || errors.Is(err, ErrNoReader) {
		return err
	}
	return runError{err}
}

// ErrProblems makes a command exit with statusProblems. The command must print the reason before it returns
// errProblems.
var ErrProblems = errors.New("the command found problems or skipped tasks")

// ErrPart makes tdf run exit with statusPart. The command must print what is missing before it returns ErrPart.
var ErrPart = errors.New("outputs or files are missing")

// ErrVanished makes tdf run exit with statusVanished. The command must print what has vanished before it returns the
// error.
var ErrVanished = errors.New("tasks have vanished")

// ErrNoReader makes tdf run exit with statusPipe: what read its stdout, such as head, has ended.
var ErrNoReader = errors.New("nothing reads stdout any more")

// A PartlyError is an error after a part of the work was done. So its exit status is not statusRefused.
type PartlyError struct{ Err error }

func (e PartlyError) Error() string { return e.Err.Error() }

func (e PartlyError) Unwrap() error { return e.Err }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (PartlyError) Code() task.Code { return task.CodeFailed }

// status prints the error of a command, and returns the command's exit status.
func (a *App) status(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, ErrProblems):
		return statusProblems
	case errors.Is(err, ErrPart):
		return statusPart
	case errors.Is(err, ErrVanished):
		return statusVanished
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		if isUnknown(err) {
			a.sayUnknown(err)
		}
		return StatusInterrupted
	case isUnknown(err):
		a.sayUnknown(err)
		return StatusFailed
	}
	var failed TasksFailed
	var exit ExitStatus
	switch {
	case errors.As(err, &failed):
		return min(int(failed), statusMany)
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, ErrNoReader):
		return statusPipe
	}
	a.Say("tdf: %v", err)
	if errors.As(err, new(runError)) {
		return statusNotRun
	}
	if !a.parsed || command.Refused(err) {
		return StatusRefused
	}
	return StatusFailed
}

// MayHaveChanged reports whether err means that Redis may have made a change, and has not answered.
func MayHaveChanged(err error) bool {
	return isUnknown(err) && conn.Unanswered(err)
}

// isUnknown reports whether the outcome of a change is unknown.
func isUnknown(err error) bool { return errors.As(err, new(*conn.UnknownError)) }

// sayUnknown prints an error with an unknown outcome, and how to learn the outcome.
func (a *App) sayUnknown(err error) {
	a.Say("tdf: %v", err)
	io.WriteString(a.Stderr, a.toSee())
}

// toSee returns a line that says how to see what the command has changed, or "".
func (a *App) toSee() string {
	look, _ := a.look.Load().(string)
	if look == "" {
		return ""
	}
	return "to see what was done: " + look + "\n"
}

// looks has the commands that show what other commands have changed.
var looks = map[string]string{
	"archive": "tdf ls", "cancel": "tdf ls", "close": "tdf campaigns", "drain": "tdf workers", "limit": "tdf limit",
	"load": "tdf stats", "open": "tdf ls, tdf periodic", "pause": "tdf pause", "periodic pause": "tdf periodic",
	"periodic resume": "tdf periodic", "periodic rm": "tdf periodic", "periodic run": "tdf periodic, tdf ls",
	"programs pin": "tdf programs", "programs rm": "tdf programs", "programs unpin": "tdf programs",
	"push": "tdf programs", "requeue": "tdf ls", "resume": "tdf pause", "retry": "tdf ls", "rm": "tdf ls",
	"set": "tdf ls", "settings": "tdf settings", "token add": "tdf token ls", "token rm": "tdf token ls",
}
