package lua

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The table of scripts has all Lua files, and ARCHITECTURE.md describes each script.
func TestScriptsAreAll(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) < 30 {
		t.Fatal(files, err)
	}
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	expect.NoError(t, err)
	var declared []string
	for _, script := range scripts {
		declared = append(declared, script.Name)
		declared = append(declared, strings.Fields(script.After)...)
		expect.Contains(t, string(page), "`redisstate/lua/"+script.Name+".lua`", "ARCHITECTURE.md does not describe", script.Name, "lua")
	}
	for _, file := range files {
		if !slices.Contains(declared, strings.TrimSuffix(filepath.Base(file), ".lua")) {
			t.Errorf("scripts.go does not have %s", file)
		}
	}
	if sums := slices.Compact(slices.Sorted(slices.Values(Sums()))); len(sums) != len(scripts)-2 {
		t.Errorf("%d scripts have %d sources; want two twins, of transact and besteffort", len(scripts), len(sums))
	}
}
