package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The help of each command ends with at least two examples. Each example names this command, with flags and arguments
// that it accepts.
func TestExamples(t *testing.T) {
	for _, c := range runnable(newRoot(cli.New(cli.Process{}))) {
		lines := strings.Split(c.Example, "\n")
		expect.Compare(t, len(lines), ">=", 2, c.CommandPath(), "examples")
		for _, line := range lines {
			checkExample(t, c.CommandPath(), line)
		}
	}
}

// runnable returns the commands below c that do something themselves, without those of the library.
func runnable(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.HasSubCommands() {
			all = append(all, runnable(sub)...)
		}
		if sub.IsAvailableCommand() && (sub.Example != "" || !sub.HasSubCommands()) {
			all = append(all, sub)
		}
	}
	return all
}

// checkExample parses the part of a line of a shell that calls a command.
func checkExample(t *testing.T, path, line string) {
	t.Helper()
	expect.MustTrue(t, strings.HasPrefix(line, "  "), path, "not indented:", line)
	at := strings.Index(line, "tdf ")
	expect.MustTrue(t, at >= 0, path, "no tdf in", line)
	root := newRoot(cli.New(cli.Process{}))
	c, args, err := root.Find(words(line[at:])[1:])
	expect.NoError(t, err, line)
	expect.Equal(t, c.CommandPath(), path, line)
	expect.NoError(t, c.ParseFlags(args), line)
	expect.NoError(t, c.ValidateArgs(c.Flags().Args()), line)
}

// words splits the first command of a line of a shell, as far as examples need it.
func words(line string) (all []string) {
	var word strings.Builder
	quote := rune(0)
	for _, r := range line + " " {
		switch {
		case quote == 0 && strings.ContainsRune("|&;<>", r):
			return all
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ' ':
			if word.Len() > 0 {
				all = append(all, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return all
}
