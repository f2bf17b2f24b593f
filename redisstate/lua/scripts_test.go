package lua

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The table of scripts has all Lua files, and ARCHITECTURE.md describes each script.
func TestScriptsAreAll(t *testing.T) {
	t.Parallel()
	files := expect.Result(filepath.Glob("*.lua")).Value(t)
	expect.MustTrue(t, len(files) >= 30, files)
	var declared []string
	for _, script := range scripts {
		declared = append(declared, script.Name)
		declared = append(declared, strings.Fields(script.After)...)
	}
	for _, file := range files {
		text := expect.Result(os.ReadFile(file)).Value(t)
		expect.True(t, strings.HasPrefix(string(text), "-- "), file, "does not begin with what it does")
		expect.True(t, slices.Contains(declared, strings.TrimSuffix(filepath.Base(file), ".lua")), "scripts.go does not have", file)
	}
	sums := slices.Compact(slices.Sorted(slices.Values(Sums())))
	expect.True(t, len(sums) == len(scripts)-3, len(scripts), "scripts have", len(sums), "sources; want three twins, of transact, write and heartbeat")
}

// The check of the rights tries all commands of the scripts, except those that only some calls need.
func TestRightsOfAllCommands(t *testing.T) {
	t.Parallel()
	checked := Rights.Source()
	for _, script := range scripts {
		for _, found := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(script.Source(), -1) {
			if name := found[1]; !slices.Contains([]string{"XADD", "XREVRANGE"}, name) {
				expect.True(t, regexp.MustCompile(`[,'"]`+name+`[ ,'"]`).MatchString(checked), name, "of", script.Name)
			}
		}
	}
}
