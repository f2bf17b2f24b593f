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
)

// Arguments are those of both commands: NAME FILE.cfg.
type Arguments struct {
	Name string // with %h filled in
	File string
}

// ErrAnswered is no error: the arguments asked for help or for the version, and got it.
var ErrAnswered = errors.New("answered")

// A UsageError says what is wrong with the arguments.
type UsageError struct{ Problem string }

func (e *UsageError) Error() string { return e.Problem }

// Parse reads the arguments of a command; what is its one-line description. The error is
// [ErrAnswered] or a *[UsageError].
func Parse(command, what string, args []string, stdout io.Writer) (Arguments, error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	version := flags.Bool("version", false, "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage(command, what))
		return Arguments{}, ErrAnswered
	case err != nil:
		return Arguments{}, usageError(command, err.Error())
	case *version:
		fmt.Fprintln(stdout, command, Version())
		return Arguments{}, ErrAnswered
	case flags.NArg() != 2:
		return Arguments{}, usageError(command, fmt.Sprintf("two arguments are needed, NAME and FILE.cfg, and %d are given", flags.NArg()))
	}
	name, err := expandName(flags.Arg(0))
	if err != nil {
		return Arguments{}, usageError(command, err.Error())
	}
	return Arguments{Name: name, File: flags.Arg(1)}, nil
}

func usageError(command, problem string) error {
	return &UsageError{fmt.Sprintf("%s\nusage: %s NAME FILE.cfg   (%[2]s -h says more)", problem, command)}
}

func usage(command, what string) string {
	return fmt.Sprintf(`usage: %s NAME FILE.cfg

%s

  NAME       a name for it, 1 to 200 bytes; %%h stands for the host's name
  FILE.cfg   its configuration: docs/configuration.md; each key can also be given by
             the environment, such as TDF_CFG_REDIS_PASSWORD

  -h, --help   print this and exit
  --version    print the version and exit

SIGTERM and SIGINT stop it. Exit status: 0 when it was stopped, 2 when the arguments or the
configuration are wrong or Redis refuses it, 1 for any other error.
`, command, what)
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
			return "", fmt.Errorf("%s in the name: %w", hostPlaceholder, err)
		}
		name = strings.ReplaceAll(arg, hostPlaceholder, host)
	}
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", fmt.Errorf("the name %.50q is not one of 1 to %d bytes without control characters", name, maxName)
	}
	return name, nil
}
