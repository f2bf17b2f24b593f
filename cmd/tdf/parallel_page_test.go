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
	page := string(expect.Result(os.ReadFile("../../docs/from-parallel.md")).Value(t))
	pairs := regexp.MustCompile("(?m)^\\| `(parallel .*)` \\| `(tdf run .*)` \\|$").FindAllStringSubmatch(page, -1)
	expect.Compare(t, len(pairs), ">=", 10)
	bin := linked(t)
	for _, pair := range pairs {
		t.Run(pair[1], func(t *testing.T) {
			t.Parallel()
			theirs, status := printedBy(t, bin, pair[1])
			ours, own := printedBy(t, bin, pair[2])
			expect.Equal(t, ours, theirs)
			expect.Equal(t, own, status, "exit status")
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
		"list": "one\ntwo words\n", "points.csv": "rate,mode\n0.1,fast\n0.2,slow\n", "names": "a b\x00c\x00",
	} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
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
