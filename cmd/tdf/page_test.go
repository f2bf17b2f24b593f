package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/expect"
)

// page returns docs/tdf.md.
func page(t *testing.T) string {
	t.Helper()
	text := expect.Result(os.ReadFile("../../docs/tdf.md")).Value(t)
	return string(text)
}

// column returns all texts in back-quotes from the first column of the table with the given heading.
func column(page, heading string) []string {
	_, rest, _ := strings.Cut(page, heading)
	var all []string
	for line := range strings.Lines(rest) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				all = append(all, m[1])
			}
		} else if len(all) > 0 {
			break
		}
	}
	return all
}

func commands() []*cobra.Command {
	root := newRoot(cli.New(cli.Process{}))
	root.InitDefaultCompletionCmd()
	return root.Commands()
}

// docs/tdf.md lists all commands, and no others.
func TestPageListsTheCommands(t *testing.T) {
	var want []string
	for _, c := range commands() {
		want = append(want, "tdf "+c.Name())
	}
	got := column(page(t), "| command | does |")
	slices.Sort(want)
	slices.Sort(got)
	expect.Equal(t, got, want, "docs/tdf.md lists")
}

// docs/tdf.md lists all filters, and no others.
func TestPageListsTheFilters(t *testing.T) {
	var want []string
	var f cli.Filter
	c := &cobra.Command{}
	f.Flags(c)
	c.Flags().VisitAll(func(f *pflag.Flag) { want = append(want, "--"+f.Name) })
	got := slices.DeleteFunc(column(page(t), "| filter | selects tasks |"), func(s string) bool { return !regexp.MustCompile(`^--[a-z-]+$`).MatchString(s) })
	slices.Sort(got)
	expect.Equal(t, got, want, "docs/tdf.md lists")
}

// docs/tdf.md names only flags that exist.
func TestPageNamesOnlyKnownFlags(t *testing.T) {
	known := map[string]bool{"--help": true}
	root := newRoot(cli.New(cli.Process{}))
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { known["--"+f.Name] = true })
	for _, c := range commands() {
		for _, c := range append(c.Commands(), c) {
			c.Flags().VisitAll(func(f *pflag.Flag) { known["--"+f.Name] = true })
		}
	}
	named := regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(page(t), -1)
	for _, flag := range named {
		if !known[flag] {
			expect.Contains(t, "--rate --mode --seed", flag)
		}
	}
	expect.True(t, len(named) >= 40, "found only", len(named), "flags; the test no longer reads the page")
}

var (
	// A command on a page: in backticks, at the beginning of a line of code, or within $(…).
	commandLine = regexp.MustCompile("(?m)(?:`|^ +(?:\\$ )?|\\$\\()tdf ([a-z-][^`\n|)]*)")
	quotes      = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// Commands on the pages have a name and flags that exist. The words after -- belong to another command.
func TestPagesNameOnlyKnownCommands(t *testing.T) {
	pages := append(expect.Result(filepath.Glob("../../docs/*.md")).Value(t), "../../README.md")
	root := newRoot(cli.New(cli.Process{}))
	root.InitDefaultCompletionCmd()
	found := 0
	for _, page := range pages {
		text := strings.ReplaceAll(string(expect.Result(os.ReadFile(page)).Value(t)), "\\\n", "")
		for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
			line, _, _ := strings.Cut(m[1], " -- ")
			line = quotes.ReplaceAllString(line, "")
			c, _, err := root.Find(strings.Fields(line))
			expect.NoError(t, err, page, line)
			for _, flag := range regexp.MustCompile(` --([a-z-]+)`).FindAllStringSubmatch(" "+line, -1) {
				known := c.Flag(flag[1]) != nil || flag[1] == "help" || flag[1] == "version"
				expect.True(t, known, page, "names the unknown flag", flag[1], "in", line)
			}
			found++
		}
	}
	expect.Compare(t, found, ">", 400)
}

// Every command and flag has a help text. A command with arguments shows an example.
func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands() {
		expect.NotEqual(t, c.Short, "")
		expect.True(t, !strings.HasSuffix(c.Short, "."), c.Name(), c.Short)
		if c.Name() != "completion" {
			expect.True(t, c.RunE != nil, c.Name(), c.Short)
		}
		takesArguments := strings.Contains(c.Use, " ")
		if takesArguments {
			expect.NotEqual(t, c.Example, "")
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			expect.True(t, f.Usage != "", c.Name(), "--", f.Name, "has no help")
		})
	}
}
