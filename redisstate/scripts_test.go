package redisstate

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Scripts returns the sums of all scripts in this directory, so that the embedded Redis allows each of them.
func TestScriptsAreAll(t *testing.T) {
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	all := Scripts()
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains([]string{
			"prelude.lua", "places.lua", "limiting.lua", "starting.lua", "positions.lua", "ordering.lua", "opening.lua", "endings.lua",
			"deciding.lua", "needs.lua", "moving.lua",
		}, file) {
			continue
		}
		known := false
		for _, before := range []string{
			"", prelude, prelude + places, prelude + places + opening, prelude + places + limiting, claiming(), prelude + places + limiting + opening,
			transacting(), prelude + places + endings + moving, prelude + places + limiting + endings + moving,
		} {
			known = known || slices.Contains(all, sumOf(before+string(source)))
		}
		if !known {
			t.Errorf("Scripts does not have %s", file)
		}
	}
}

func sumOf(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}
