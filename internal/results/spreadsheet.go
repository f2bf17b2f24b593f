package results

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/lazy"
)

const (
	// first characters of formulas, in half and full width. The list is from OWASP, "CSV Injection"
	formulaSigns = "=+-@＝＋－＠"
	cellEnds     = ";\t\r\n" // characters at which a spreadsheet may split a line into cells, besides the comma
)

// plainNumber matches negative numbers. They begin like formulas, but are not formulas.
var plainNumber = lazy.Regexp(`^-[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// escapeFormulas puts an apostrophe before each text that a spreadsheet would run as a formula: before cells, and
// before parts of cells, because a spreadsheet may split a line at other characters than commas.
func escapeFormulas(row []string) {
	for i, cell := range row {
		if strings.ContainsAny(cell, formulaSigns+cellEnds) {
			row[i] = escapeFormula(cell)
		}
	}
}

func escapeFormula(cell string) string {
	var b strings.Builder
	if strings.IndexByte(cellEnds[1:], cell[0]) >= 0 {
		b.WriteByte('\'')
	}
	for cell != "" {
		end := strings.IndexAny(cell, cellEnds) + 1
		if end == 0 {
			end = len(cell)
		}
		if isFormula(cell[:end]) {
			b.WriteByte('\'')
		}
		b.WriteString(cell[:end])
		cell = cell[end:]
	}
	return b.String()
}

// isFormula reports whether a spreadsheet may run a text as a formula. Spreadsheets skip quotes and blanks before the
// formula.
func isFormula(text string) bool {
	text = strings.TrimFunc(text, func(r rune) bool {
		return strings.ContainsRune(`";`, r) || unicode.In(r, unicode.C, unicode.Z)
	})
	first, _ := utf8.DecodeRuneInString(text)
	return text != "" && strings.ContainsRune(formulaSigns, first) && !plainNumber().MatchString(text)
}
