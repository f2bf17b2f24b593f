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

// tables returns the cells of all tables of a page. The first row of each table is its head.
func tables(t testing.TB, page string) (all [][][]string) {
	t.Helper()
	inTable := false
	for line := range strings.Lines(read(t, page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inTable = false
			continue
		}
		if !inTable {
			all, inTable = append(all, nil), true
		}
		if strings.HasPrefix(line, "| --- ") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all[len(all)-1] = append(all[len(all)-1], cells)
	}
	return all
}

// below returns the rows of the table with a head.
func below(t testing.TB, page, head string) [][]string {
	t.Helper()
	for _, table := range tables(t, page) {
		if "| "+strings.Join(table[0], " | ")+" |" == head {
			return table[1:]
		}
	}
	t.Fatal(page, "has no table", head)
	return nil
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
