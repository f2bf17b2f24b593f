package cmd_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Bounds of what a package of TDF allocates when a command starts. A start must take less than a millisecond of its own
// code for each package, but time depends on the machine and its load, so a test must not measure it. In a millisecond,
// code that parses templates or compiles regular expressions makes at least 2,000 allocations, and their number is the
// same on every machine.
const (
	maxStartBytes  = 100_000
	maxStartAllocs = 2000
)

// maxSize bounds the size of a command in bytes, without symbol table and debug information.
const maxSize = 42_000_000

// Commands start fast, because shells complete with tdf, and scripts call it in loops: no package parses, compiles or
// draws anything before a command uses it.
func TestStart(t *testing.T) {
	initialized := regexp.MustCompile(`(?m)^init (github\.com/tdf-framework/tdf\S*) @.*, (\d+) bytes, (\d+) allocs$`)
	for _, name := range []string{"tdf", "tdf-server", "tdf-worker"} {
		cmd := exec.CommandContext(t.Context(), built(t, name), "--version")
		cmd.Env = append(environment(), "GODEBUG=inittrace=1")
		var trace strings.Builder
		cmd.Stderr = &trace
		must(t, cmd.Run())
		packages := initialized.FindAllStringSubmatch(trace.String(), -1)
		expect.MustTrue(t, len(packages) > 5, "the trace of", name, "names the packages", trace.String())
		for _, found := range packages {
			bytes := expect.Result(strconv.Atoi(found[2])).Value(t)
			allocs := expect.Result(strconv.Atoi(found[3])).Value(t)
			expect.Compare(t, bytes, "<=", maxStartBytes, name, allocs, maxStartAllocs)
			expect.Compare(t, allocs, "<=", maxStartAllocs, name, bytes, maxStartBytes)
		}
	}
}

// The size counts when the commands are copied to many machines, or start from a cold disk.
func TestSize(t *testing.T) {
	for _, name := range []string{"tdf", "tdf-server", "tdf-worker"} {
		expect.Compare(t, expect.Result(os.Stat(built(t, name))).Value(t).Size(), "<=", maxSize, name)
	}
}
