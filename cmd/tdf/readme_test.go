package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The command of README prints the output that it shows, and the page stays short.
func TestReadme(t *testing.T) {
	text := string(expect.Result(os.ReadFile("../../README.md")).Value(t))
	top, _, _ := strings.Cut(text, "\n## ")
	steps := session(top)
	expect.MustLen(t, steps, 1)
	printed, status := printedBy(t, linked(t), steps[0].command)
	expect.Equal(t, printed, slices.Sorted(slices.Values(steps[0].output)))
	expect.Equal(t, status, 0)
	expect.Compare(t, strings.Count(text, "\n"), "<=", 160, "lines")
}

// A step is a command of the session, with the lines that it prints.
type step struct {
	command string
	output  []string
}

// session returns the steps of a session, from the indented blocks of a page.
func session(page string) (steps []step) {
	for line := range strings.Lines(page) {
		line, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case !indented:
		case isCommand:
			steps = append(steps, step{command: strings.TrimPrefix(command, "bin/")})
		case len(steps) > 0:
			last := &steps[len(steps)-1]
			last.output = append(last.output, line)
		}
	}
	return steps
}

// script returns the lines of a script that run the step on a terminal and compare its output.
func (s step) script() string {
	command, fails := s.command, ""
	if strings.Contains(command, " retry ") {
		command += " --yes"
	}
	if strings.Contains(command, " --until-done") {
		fails = "! " // some tasks fail
	}
	lines := "stdin keys\n" + fails + "tty sh -c " + scriptWord(command) + "\n"
	for _, line := range s.output {
		if !strings.Contains(line, "[y/N]") { // --yes answers this question
			lines += "stdout " + scriptWord(pattern(line)) + "\n"
		}
	}
	return lines
}

// scriptWord quotes a word for a script of testscript.
func scriptWord(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

var (
	chance = regexp.MustCompile(`on \S+ .*; example: task \d|on \S+; example: task \d`) // these parts differ between two runs, because any worker may run a task
	rates  = regexp.MustCompile(`; [0-9.]+/s.*`)
)

// pattern returns a regular expression that matches the line, even if other workers run the tasks.
func pattern(line string) string {
	const varies = "\x00"
	line = rates.ReplaceAllString(chance.ReplaceAllString(line, varies), varies)
	return strings.ReplaceAll(regexp.QuoteMeta(line), varies, ".*")
}

// fenced returns the first code block of a language.
func fenced(t *testing.T, section, language string) string {
	t.Helper()
	_, block, ok := strings.Cut(section, "```"+language+"\n")
	expect.MustTrue(t, ok, "the section has no block in", language)
	block, _, _ = strings.Cut(block, "```")
	return block
}

// The commands of each recipe in docs/recipes.md print the lines that the page shows. The test uses the configuration of the
// recipe for its workers.
func TestRecipes(t *testing.T) {
	text := expect.Result(os.ReadFile("../../docs/recipes.md")).Value(t)
	head, rest, _ := strings.Cut(string(text), "\n## ")
	_, programs, _ := strings.Cut(head, "`square/run.sh`")
	square, sum, _ := strings.Cut(programs, "`sum/run.sh`")
	files := "-- square/run.sh --\n" + fenced(t, square, "sh") + "-- sum/run.sh --\n" + fenced(t, sum, "sh") + "-- keys --\n\n"
	dir, recipes := t.TempDir(), 0
	for section := range strings.SplitSeq(rest, "\n## ") {
		name, section, _ := strings.Cut(section, "\n")
		steps := session(section)
		if len(steps) == 0 {
			continue
		}
		recipes++
		script := "serve 2" + overrides(section) + "\nstdin keys\ntty sh recipe.sh\n"
		commands := ""
		for _, s := range steps {
			commands += s.command + "\n"
			for _, line := range s.output {
				script += "stdout " + scriptWord(pattern(line)) + "\n"
			}
		}
		if of := regexp.MustCompile("`(\\w+/run\\.sh)`").FindStringSubmatch(section); of != nil { // the recipe has a program of its own
			script += "-- " + of[1] + " --\n" + fenced(t, section, "sh")
		}
		script += files + "-- recipe.sh --\n" + commands
		path := filepath.Join(dir, regexp.MustCompile(`\W+`).ReplaceAllString(strings.ToLower(name), "_")+".txt")
		expect.NoError(t, os.WriteFile(path, []byte(script), 0o644))
	}
	expect.True(t, recipes >= 11, "the page has", recipes, "recipes")
	runScripts(t, dir)
}

// overrides returns the values in the configuration of a section, as arguments of the command serve.
func overrides(section string) (args string) {
	_, block, _ := strings.Cut(section, "```ini\n")
	block, _, _ = strings.Cut(block, "```")
	name := ""
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		if in, is := strings.CutPrefix(line, "["); is {
			name = strings.TrimSuffix(in, "]")
		} else if line != "" {
			args += " " + name + "." + line
		}
	}
	return args
}
