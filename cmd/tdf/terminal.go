package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// A terminal records whether stdout and stderr are terminals, and what stdout can show.
type terminal struct {
	out, err bool
	colour   bool // stdout can show colours
	width    int  // number of columns of stdout; 0 if stdout is not a terminal
}

func newTerminal(stdout, stderr io.Writer) terminal {
	t := terminal{out: isTerminal(stdout), err: isTerminal(stderr)}
	t.colour = t.out && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if f, ok := stdout.(*os.File); ok && t.out {
		t.width = 80
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			t.width = width
		}
	}
	return t
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// unprintable reports whether a character controls the terminal, or changes how a terminal shows other characters: control
// characters, characters that reverse the direction of a text, line separators, and invisible characters.
func unprintable(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// printable escapes unprintable characters and invalid UTF-8, as a Go string literal does. It keeps newlines and tabs.
func printable(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != "\uFFFD"[0]:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[i]), 16))
		case r == '\n' || r == '\t' || !unprintable(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// oneLine returns printable text on one line, cut to at most limit characters. A limit of 0 means no limit.
func oneLine(text string, limit int) string {
	line := printable(strings.Join(strings.Fields(text), " "))
	if limit <= 0 || utf8.RuneCountInString(line) <= limit {
		return line
	}
	runes := []rune(line)
	return string(runes[:limit-1]) + "…"
}
