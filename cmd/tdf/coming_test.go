package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Each pair of lines in docs/from-parallel.md prints the same, and has the same exit status.
func TestFromParallel(t *testing.T) {
	eachLine(t, "from-parallel.md", "(?m)^\\| `(.*parallel.*)` \\| `(.*tdf run.*)` \\|$", func(t *testing.T, bin string, cells []string) {
		theirs, status := printedBy(t, bin, strings.ReplaceAll(cells[0], `\|`, "|"))
		ours, own := printedBy(t, bin, strings.ReplaceAll(cells[1], `\|`, "|"))
		expect.Equal(t, ours, theirs)
		expect.Equal(t, own, status, "exit status")
	})
}

// Each line of docs/from-hyperqueue.md succeeds, and prints what the page says.
func TestFromHyperQueue(t *testing.T) {
	eachLine(t, "from-hyperqueue.md", "(?m)^\\| `hq .*` \\| `(.*tdf run .*)` \\| (.*)\\|$", func(t *testing.T, bin string, cells []string) {
		printed, status := printedBy(t, bin, strings.ReplaceAll(cells[0], `\|`, "|"))
		expect.Equal(t, printed, strings.Split(strings.Trim(cells[1], "` "), " / "))
		expect.Equal(t, status, 0, "exit status")
	})
}

// eachLine calls a test for each line of a page's table, with the cells that the expression finds.
func eachLine(t *testing.T, page, line string, test func(t *testing.T, bin string, cells []string)) {
	t.Helper()
	text := string(expect.Result(os.ReadFile("../../docs/" + page)).Value(t))
	lines := regexp.MustCompile(line).FindAllStringSubmatch(text, -1)
	expect.Compare(t, len(lines), ">=", 10)
	bin := linked(t)
	for _, found := range lines {
		t.Run(found[1], func(t *testing.T) {
			t.Parallel()
			test(t, bin, found[1:])
		})
	}
}

// linked returns a directory in which tdf is a link to the test binary.
func linked(t *testing.T) string {
	bin := t.TempDir()
	expect.NoError(t, os.Symlink(expect.Result(os.Executable()).Value(t), filepath.Join(bin, "tdf")))
	return bin
}

// printedBy runs a line of a shell in a directory with a few files. It returns the sorted lines of stdout, and the exit
// status.
func printedBy(t *testing.T, bin, line string) (lines []string, status int) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"items.jsonl": "{\"rate\":0.1,\"mode\":\"fast\"}\n{\"rate\":0.2,\"mode\":\"slow\"}\n", "sub/file": "",
		"list": "one\ntwo words\n", "points.csv": "rate,mode\n0.1,fast\n0.2,slow\n", "names": "a b\x00c\x00",
	} {
		path := filepath.Join(dir, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", line)
	c.Dir = dir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TDF_") {
			c.Env = append(c.Env, variable)
		}
	}
	c.Env = append(c.Env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir)
	printed, _ := c.Output() // the status says whether it failed
	text := strings.TrimSuffix(string(printed), "\n")
	return slices.Sorted(strings.SplitSeq(text, "\n")), c.ProcessState.ExitCode()
}
