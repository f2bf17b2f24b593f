package dashboard

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/format"
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

// outputOf shows the end of an output with its colours. All other control sequences and invisible characters are shown as escapes, so that nothing hides.
func outputOf(text string) output {
	var o output
	if o.Cut = len(text) - longestOutput; o.Cut > 0 {
		for o.Cut < len(text) && !utf8.RuneStart(text[o.Cut]) {
			o.Cut++
		}
		text = text[o.Cut:]
	}
	o.Cut = max(o.Cut, 0)
	var p painter
	for line := range strings.Lines(text) {
		p.line(line)
	}
	o.HTML = template.HTML(p.b.String())
	return o
}

// A painter writes text as HTML. It keeps the colours from line to line, as a terminal does.
type painter struct {
	b          strings.Builder
	bold, dim  bool
	fore, back int // 0 for the usual colour, or that of a terminal, plus 1
}

func (p *painter) line(line string) {
	cut := len(line) - longestLine
	if cut > 0 {
		end := longestLine
		for end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		cut, line = len(line)-end, line[:end]
	}
	for line != "" {
		at := strings.Index(line, "\x1b[")
		if at < 0 {
			p.text(line)
			break
		}
		p.text(line[:at])
		numbers, rest, ok := strings.Cut(line[at+2:], "m")
		if !ok || strings.Trim(numbers, "0123456789;") != "" || len(numbers) > 40 { // a sequence that sets no colours
			p.text(line[at : at+2])
			line = line[at+2:]
			continue
		}
		p.set(numbers)
		line = rest
	}
	if cut > 0 {
		fmt.Fprintf(&p.b, "<em class=\"faint\"> … %s more</em>\n", count(cut, "byte"))
	}
}

func (p *painter) text(text string) {
	if text == "" {
		return
	}
	var classes []string
	for _, c := range []struct {
		is   bool
		name string
	}{{p.bold, "b"}, {p.dim, "d"}, {p.fore > 0, "f" + strconv.Itoa(p.fore-1)}, {p.back > 0, "g" + strconv.Itoa(p.back-1)}} {
		if c.is {
			classes = append(classes, c.name)
		}
	}
	text = html.EscapeString(format.Printable(strings.ReplaceAll(text, "\r\n", "\n")))
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
			if i += used; n == 38 {
				p.fore = colour
			} else {
				p.back = colour
			}
		}
	}
}

// extended reads 5;N or 2;R;G;B. It returns the colour plus 1, or 0 if there is none among the 16, and how many numbers it has read.
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
