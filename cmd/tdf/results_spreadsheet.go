package main

import (
	"regexp"
	"strings"
)

// formulaStarts are the first characters of formulas, in half and full width. The list is from OWASP, "CSV Injection".
const formulaStarts = "=+-@\t\r\n＝＋－＠"

// plainNumber matches negative numbers. They begin like formulas, but are not formulas.
var plainNumber = regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// escapeFormulas puts an apostrophe before each cell that a spreadsheet would run as a formula.
func escapeFormulas(row []string) {
	for i, cell := range row {
		if cell != "" && strings.ContainsRune(formulaStarts, []rune(cell[:min(len(cell), 4)])[0]) && !plainNumber.MatchString(cell) {
			row[i] = "'" + cell
		}
	}
}
