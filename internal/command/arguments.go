package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/task"
)

// Arguments are the arguments of a command: NAME FILE.cfg.
type Arguments struct {
	Name string // the name; each %h in the argument has been replaced by the host's name
	File string
}

// A Flag is a flag of one command, beside those that all commands have.
type Flag struct {
	Name, Value, Usage string             // as in the help: --Name Value   Usage
	Set                func(string) error // called with the value; an error refuses it
}

// errAnswered means that Parse has printed the help or the version.
var errAnswered = errors.New("the help or the version was printed")

// A UsageError reports invalid arguments.
type UsageError struct{ Problem string }

func (e *UsageError) Error() string { return e.Problem }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*UsageError) Code() task.Code { return task.CodeInvalid }

// Parse parses the arguments of a command, with the command's own flags. The parameter description is a text for the
// command's help. Parse prints the help or the version if an argument asks for it. If Parse returns an error, the
// command ends with its [Status].
func Parse(command, description string, args []string, stdout io.Writer, own ...Flag) (Arguments, error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, f := range own {
		flags.Func(f.Name, f.Usage, f.Set)
	}
	version := flags.Bool("version", false, "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage(command, description, own))
		return Arguments{}, errAnswered
	case err != nil:
		return Arguments{}, usageError(command, err.Error())
	case *version:
		fmt.Fprintln(stdout, command, Version())
		return Arguments{}, errAnswered
	case flags.NArg() != 2:
		return Arguments{}, usageError(command, fmt.Sprintf("got %d arguments; want NAME and FILE.cfg", flags.NArg()))
	}
	name, err := expandName(flags.Arg(0))
	if err != nil {
		return Arguments{}, usageError(command, err.Error())
	}
	return Arguments{Name: name, File: flags.Arg(1)}, nil
}

func usageError(command, problem string) error {
	return &UsageError{fmt.Sprintf("%s\nusage: %s [FLAGS] NAME FILE.cfg   (%[2]s -h for help)", problem, command)}
}

func usage(command, description string, own []Flag) string {
	return fmt.Sprintf(`usage: %s [FLAGS] NAME FILE.cfg

%s

  NAME       name of 1 to 200 bytes; %%h stands for the host's name
  FILE.cfg   configuration file (docs/configuration.md); environment variables such as
             TDF_CFG_REDIS_PASSWORD override its keys

%s  -h, --help   print this help
  --version    print the version

SIGTERM and SIGINT stop the command. Its exit status is one of these:

  0   the command was stopped, or it printed the help or the version
  1   any other error
  2   an error that would occur again after a restart, such as an invalid configuration
`, command, description, usageOf(own))
}

// usageOf returns the help for a command's own flags.
func usageOf(own []Flag) string {
	var text strings.Builder
	for _, f := range own {
		fmt.Fprintf(&text, "  --%s %s\n               %s\n", f.Name, f.Value, f.Usage)
	}
	return text.String()
}

const (
	hostPlaceholder = "%h"
	maxName         = 200 // bytes
)

func expandName(arg string) (string, error) {
	name := arg
	if strings.Contains(arg, hostPlaceholder) {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("replace %s in the name: %w", hostPlaceholder, err)
		}
		name = strings.ReplaceAll(arg, hostPlaceholder, host)
	}
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", fmt.Errorf("invalid name %.50q: want 1 to %d bytes without control characters", name, maxName)
	}
	return name, nil
}
