package format

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unprintable reports whether a character controls the terminal, or changes how a terminal shows other characters:
// control characters, characters that reverse the direction of a text, line separators, and invisible characters.
func Unprintable(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// Printable escapes unprintable characters and invalid UTF-8, as a Go string literal does. It keeps newlines and tabs.
func Printable(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != "\uFFFD"[0]:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[i]), 16))
		case r == '\n' || r == '\t' || !Unprintable(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// OneLine returns printable text on one line, cut to at most limit characters. A limit of 0 means no limit.
func OneLine(text string, limit int) string {
	line := Printable(strings.Join(strings.Fields(text), " "))
	if limit <= 0 || utf8.RuneCountInString(line) <= limit {
		return line
	}
	runes := []rune(line)
	return string(runes[:limit-1]) + "…"
}
