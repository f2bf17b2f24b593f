package lua

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The table of scripts has all Lua files, and ARCHITECTURE.md describes each script.
func TestScriptsAreAll(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) < 30 {
		t.Fatal(files, err)
	}
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, script := range scripts {
		declared = append(declared, script.Name)
		declared = append(declared, strings.Fields(script.After)...)
		if !strings.Contains(string(page), "`redisstate/lua/"+script.Name+".lua`") {
			t.Errorf("ARCHITECTURE.md does not describe %s.lua", script.Name)
		}
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
