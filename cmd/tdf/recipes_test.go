package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tdf-framework/tdf/internal/expect"
)

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
		script := "serve 2" + overrides(section) + "\nttyin keys\nexec sh -c '(sh recipe.sh) >/dev/tty 2>&1'\n"
		commands := ""
		for _, s := range steps {
			commands += s.command + "\n"
			for _, line := range s.output {
				script += "ttyout " + scriptWord(pattern(line)) + "\n"
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
	testscript.Run(t, testscript.Params{Dir: dir, Setup: setUp, Cmds: scriptCommands})
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
