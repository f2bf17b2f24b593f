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

// A style says how to write: for people at a terminal, or for what reads a pipe.
type style struct {
	out, err bool // stdout, stderr is a terminal
	colour   bool // of stdout
	width    int  // of the terminal; 0: there is none
}

func newStyle(stdout, stderr io.Writer) style {
	s := style{out: isTerminal(stdout), err: isTerminal(stderr)}
	s.colour = s.out && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if f, ok := stdout.(*os.File); ok && s.out {
		s.width = 80
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			s.width = width
		}
	}
	return s
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printable returns what a program printed so that it does nothing to a terminal: control
// characters but newline and tab, and bytes that are no text, are shown as Go would write them.
func printable(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != "\uFFFD"[0]:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[i]), 16))
		case r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// oneLine returns text in one line of at most so many characters; 0: as many as there are.
func oneLine(text string, most int) string {
	line := printable(strings.Join(strings.Fields(text), " "))
	if most <= 0 || utf8.RuneCountInString(line) <= most {
		return line
	}
	runes := []rune(line)
	return string(runes[:most-1]) + "…"
}

// counted puts a number before what it counts.
func counted[N int | int64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + what
}

// watchCommand is what a user may type to watch a campaign; "" is for all tasks.
func watchCommand(campaign string) string {
	switch {
	case campaign == "":
		return "tdf watch"
	case strings.HasPrefix(campaign, "-"):
		return "tdf watch -- " + shellWord(campaign)
	}
	return "tdf watch " + shellWord(campaign)
}
