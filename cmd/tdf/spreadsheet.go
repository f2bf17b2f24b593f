package main

import (
	"regexp"
	"strings"
)

// formulaStarts are the characters that a cell begins with which a spreadsheet takes for a formula, as OWASP lists them ("CSV
// Injection"): those of full width count too.
const formulaStarts = "=+-@\t\r\n＝＋－＠"

// plainNumber matches what begins with a minus sign and is a number all the same.
var plainNumber = regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// escapeFormulas puts an apostrophe before the cells of a row that a spreadsheet would take for formulas. Numbers stay as they are.
func escapeFormulas(row []string) {
	for i, cell := range row {
		if cell != "" && strings.ContainsRune(formulaStarts, []rune(cell[:min(len(cell), 4)])[0]) && !plainNumber.MatchString(cell) {
			row[i] = "'" + cell
		}
	}
}
