package doctest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A paragraph of docs/guarantees.md, or an item of a list.
var paragraph = regexp.MustCompile(`\n(?:\n|- )`)

// Each paragraph of these sections of docs/guarantees.md has a sentence whose tests the section names: rows of the table
// of broker/brokertest, and tests. They exist.
func TestGuarantees(t *testing.T) {
	var known []string
	for line := range strings.Lines(read(t, "broker/brokertest/testdata/table.txt")) {
		if !strings.HasPrefix(line, " ") {
			known = append(known, strings.TrimSpace(line))
		}
	}
	for _, heading := range []string{"Transitions", "Leases"} {
		_, rest, _ := strings.Cut(read(t, "docs/guarantees.md"), "\n## "+heading+"\n")
		section, rest, _ := strings.Cut(rest, "\nThe tests of these sentences")
		table, _, _ := strings.Cut(rest, "\n## ")
		var sentences []string
		for line := range strings.Lines(table) {
			cells := strings.Split(strings.Trim(line, "|\n"), "|")
			if len(cells) != 2 || !strings.Contains(line, "`") {
				continue
			}
			sentence := strings.TrimSpace(cells[0])
			sentences = append(sentences, sentence)
			expect.Contains(t, strings.Join(strings.Fields(section), " "), sentence, heading)
			tests := names(cells[1])
			expect.Compare(t, len(tests), ">", 0, sentence)
			for _, name := range tests {
				if !slices.Contains(known, name) {
					expect.Equal(t, testProblem(t, name), "", sentence, "names", name)
				}
			}
		}
		for _, text := range paragraph.Split(section, -1) {
			text = strings.Join(strings.Fields(text), " ")
			if text == "" {
				continue
			}
			tested := slices.ContainsFunc(sentences, func(s string) bool { return strings.Contains(text, s) })
			expect.True(t, tested, heading, "has no test of:", text)
		}
	}
}
