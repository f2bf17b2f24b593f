package doctest

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Each threat on docs/security.md has an answer, and tests that exist.
func TestThreats(t *testing.T) {
	threats := 0
	for _, table := range tables(t, "docs/security.md") {
		if table[0][0] != "threat" {
			continue
		}
		for _, row := range table[1:] {
			expect.MustLen(t, row, 3, "columns of", row)
			tests := names(row[2])
			expect.NotEqual(t, row[1], "")
			expect.Compare(t, len(tests), ">", 0)
			for _, name := range tests {
				expect.Equal(t, testProblem(t, name), "", row[0], "names", name)
			}
			threats++
		}
	}
	expect.True(t, threats >= 30, "only", threats, "threats were found: does this test still read the page?")
}
