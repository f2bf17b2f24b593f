package doctest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// rows returns the cells of the table below a heading, row by row. It omits the head of the table.
func rows(t testing.TB, page, heading string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, page), "\n"+heading+"\n")
	expect.MustTrue(t, found, page, "has no", heading)
	rest, _, _ = strings.Cut(rest, "\n## ")
	var all [][]string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|\n"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		all = append(all, cells)
	}
	return all
}

// names returns the texts in backticks in a cell.
func names(cell string) []string {
	var all []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// first returns the names in the first column of a table.
func first(rows [][]string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, names(row[0])...)
	}
	return all
}
