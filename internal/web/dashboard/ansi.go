package dashboard

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/lazy"
)

// Bounds of outputs on a page. The API has the whole output.
const (
	longestOutput = 64 << 10 // bytes of the end
	longestLine   = 2000     // bytes of the beginning of a line
)

// An output is what a program has printed, for a page.
type output struct {
	HTML template.HTML
	Cut  int // bytes that are missing at the beginning
}

// outputOf shows the end of an output with its colours. All other control sequences and invisible characters are shown
// as escapes, so that nothing hides.
func outputOf(text string) output {
	cut := max(0, len(text)-longestOutput)
	cut += len(text[cut:]) - len(wholeRunes(text[cut:], cut > 0))
	var p painter
	p.write(text[cut:])
	p.finish()
	return output{template.HTML(p.b.String()), cut}
}

// wholeRunes returns a text without the rest of a character that began before it, if anything has been cut off there.
func wholeRunes(text string, cut bool) string {
	for n := 0; cut && n < utf8.UTFMax && text != "" && !utf8.RuneStart(text[0]); n++ {
		text = text[1:]
	}
	return text
}

// A painter writes text as HTML, part by part. It keeps the colours from line to line, as a terminal does. A carriage
// return begins a new line, so that a bar of progress neither hides what was before it nor fills one line.
type painter struct {
	b strings.Builder
	style
}

// A style is what the painter must know of the text before.
type style struct {
	bold, dim  bool
	fore, back int    // 0 for the usual colour, or that of a terminal, plus 1
	held       string // the beginning of a control sequence or of a character, which the next part may complete
	line, cut  int    // bytes of the current line that were shown, and that were not
}

var (
	colourSequence = lazy.Regexp(`^\x1b\[([0-9;]{0,40})m`)
	begunSequence  = lazy.Regexp(`^(\r|\x1b(\[[0-9;]{0,40})?)$`)
)

func (p *painter) write(text string) {
	text, p.held = p.held+text, ""
	for text != "" {
		at := strings.IndexAny(text, "\x1b\r\n")
		if at < 0 {
			at = len(text) - begunRune(text)
			p.held = text[at:]
			p.text(text[:at])
			return
		}
		p.text(text[:at])
		if text = text[at:]; begunSequence().MatchString(text) {
			p.held = text
			return
		}
		switch found := colourSequence().FindStringSubmatch(text); {
		case found != nil:
			p.set(found[1])
			text = text[len(found[0]):]
		case text[0] == '\x1b': // a sequence that sets no colours
			p.text(text[:1])
			text = text[1:]
		default:
			p.end("\n")
			text = strings.TrimPrefix(strings.TrimPrefix(text, "\r"), "\n") // a carriage return, a line feed, or both
		}
	}
}

// begunRune returns how many bytes at the end of a text are the beginning of a character.
func begunRune(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if rest := text[len(text)-n:]; utf8.RuneStart(rest[0]) {
			if utf8.FullRuneInString(rest) {
				return 0
			}
			return n
		}
	}
	return 0
}

// end ends a line.
func (p *painter) end(with string) {
	if p.cut > 0 {
		fmt.Fprintf(&p.b, "<em class=\"faint\"> %s more</em>", count(p.cut, "byte"))
	}
	p.b.WriteString(with)
	p.line, p.cut = 0, 0
}

// finish writes what the painter has held back. Nothing may follow.
func (p *painter) finish() {
	if p.held == "\r" {
		p.held = "\n"
	}
	p.text(p.held)
	p.end("")
}

// text writes a part of a line, or counts its bytes if the line is too long.
func (p *painter) text(text string) {
	if room := longestLine - p.line; p.cut == 0 && len(text) > room {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		p.cut = len(text) - room
		p.span(text[:room])
		p.b.WriteString("<em class=\"faint\"> …</em>")
		return
	}
	if p.cut > 0 {
		p.cut += len(text)
		return
	}
	p.line += len(text)
	p.span(text)
}

func (p *painter) span(text string) {
	if text == "" {
		return
	}
	var classes []string
	for _, c := range []struct {
		is   bool
		name string
	}{
		{p.bold, "b"},
		{p.dim, "d"},
		{p.fore > 0, "f" + strconv.Itoa(p.fore-1)},
		{p.back > 0, "g" + strconv.Itoa(p.back-1)},
	} {
		if c.is {
			classes = append(classes, c.name)
		}
	}
	text = html.EscapeString(format.Printable(text))
	if len(classes) == 0 {
		p.b.WriteString(text)
		return
	}
	p.b.WriteString(`<span class="` + strings.Join(classes, " ") + `">` + text + `</span>`)
}

// set changes the colours, as the numbers of a sequence say. Colours beyond the 16 of a terminal become the usual one.
func (p *painter) set(numbers string) {
	all := strings.Split(numbers, ";")
	for i := 0; i < len(all); i++ {
		n, _ := strconv.Atoi(all[i]) // an empty number is 0
		switch {
		case n == 0:
			p.bold, p.dim, p.fore, p.back = false, false, 0, 0
		case n == 1:
			p.bold = true
		case n == 2:
			p.dim = true
		case n == 22:
			p.bold, p.dim = false, false
		case n >= 30 && n <= 37:
			p.fore = n - 29
		case n >= 90 && n <= 97:
			p.fore = n - 81
		case n >= 40 && n <= 47:
			p.back = n - 39
		case n >= 100 && n <= 107:
			p.back = n - 91
		case n == 39:
			p.fore = 0
		case n == 49:
			p.back = 0
		case n == 38 || n == 48:
			colour, used := extended(all[i+1:])
			i += used
			if n == 38 {
				p.fore = colour
			} else {
				p.back = colour
			}
		}
	}
}

// extended reads 5;N or 2;R;G;B. It returns the colour plus 1, or 0 if there is none among the 16, and how many numbers
// it has read.
func extended(rest []string) (colour, used int) {
	if len(rest) >= 2 && rest[0] == "5" {
		if n, err := strconv.Atoi(rest[1]); err == nil && n < 16 {
			return n + 1, 2
		}
		return 0, 2
	}
	if len(rest) >= 4 && rest[0] == "2" {
		return 0, 4
	}
	return 0, len(rest)
}
