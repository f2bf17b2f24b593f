package sweep

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// A Grid is all combinations of the values of some parameters.
type Grid struct{ axes []axis }

// An axis is a parameter with its values: those of the first span, then those of the next.
type axis struct {
	name  string
	spans []span
	count int64
}

// maxPoints is more than a namespace can hold.
const maxPoints = 1_000_000_000_000

// ParseGrid reads a grid: a=1..10 b=x,y c=0.1..0.5/0.1. Parameters are separated by blanks, values by
// commas. A range goes up or down to its second number, which is one of its values if a step meets it; the
// step stands behind a slash, and is 1 for whole numbers. Decimals are exact, and may have exponents: 1e-3..5e-3/1e-3
// is 0.001, 0.002 and so on. Quotes ('…', "…", \) as in an input keep blanks, commas and dots as they are. 1-10 and
// 1:10 without quotes are an error, since they are mostly meant as ranges.
func ParseGrid(text string) (*Grid, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the grid %q: %w", text, errNotUTF8)
	}
	g := &Grid{}
	words, err := splitGrid(text)
	if err != nil {
		return nil, fmt.Errorf("the grid %q: %w", text, err)
	}
	for _, w := range words {
		if err := g.add(w); err != nil {
			return nil, fmt.Errorf("the grid %q: %w", text, err)
		}
	}
	if len(g.axes) == 0 {
		return nil, fmt.Errorf("the grid %q is empty; write a=1..10 b=x,y", text)
	}
	if g.Len() > maxPoints {
		return nil, fmt.Errorf("the grid %q has more than %d points", text, int64(maxPoints))
	}
	return g, nil
}

// Len counts the points.
func (g *Grid) Len() int64 {
	n := uint64(1)
	for _, a := range g.axes {
		high, low := bits.Mul64(n, uint64(a.count))
		if high > 0 || low > maxPoints {
			return maxPoints + 1
		}
		n = low
	}
	return int64(n)
}

// Rows returns the points: the last parameter changes fastest. The error is always nil.
func (g *Grid) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for n := range g.Len() {
			if !yield(g.row(n), nil) {
				return
			}
		}
	}
}

func (g *Grid) row(n int64) Row {
	row := Row{Line: n + 1, Params: make([]Param, len(g.axes)), ofGrid: true}
	for i := len(g.axes) - 1; i >= 0; i-- {
		a := &g.axes[i]
		row.Params[i] = Param{Name: a.name, Text: a.value(n % a.count)}
		n /= a.count
	}
	return row
}

func (a *axis) value(i int64) string {
	for _, s := range a.spans {
		if i < s.count {
			return s.value(i)
		}
		i -= s.count
	}
	panic("sweep: no such value")
}

func (g *Grid) add(w gridWord) error {
	a := axis{name: w.name}
	var names []string
	for _, other := range g.axes {
		names = append(names, other.name)
	}
	if err := checkName(a.name, names); err != nil {
		return err
	}
	for _, item := range w.items {
		if meant := item.suggestion(); meant != "" {
			return fmt.Errorf("%s=%s: did you mean %s=%s? Text is quoted: %s='%s'", a.name, item.text, a.name, meant, a.name, item.text)
		}
		s, err := parseSpan(item)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		a.spans = append(a.spans, s)
		if a.count += s.count; a.count > maxPoints {
			return fmt.Errorf("%s has more than %d values", a.name, int64(maxPoints))
		}
	}
	g.axes = append(g.axes, a)
	return nil
}

// A gridWord is a parameter as it is written.
type gridWord struct {
	name  string
	items []gridItem
}

type gridItem struct {
	text   string
	quoted bool // in part at least: it is no range
}

var (
	errNoEquals = errors.New("write NAME=VALUES, such as a=1..10 or b=x,y")
	errQuote    = errors.New("a quote is not closed")
	errEmpty    = errors.New("a value is empty; write '' if it is meant to be")
)

// splitGrid takes the text apart at blanks and commas that are not in quotes.
func splitGrid(text string) ([]gridWord, error) {
	l := lexer{rest: text}
	var words []gridWord
	for l.skipBlanks(); l.rest != ""; l.skipBlanks() {
		end := strings.IndexAny(l.rest, "= \t\n\r")
		if end < 0 || l.rest[end] != '=' {
			return nil, errNoEquals
		}
		w := gridWord{name: l.rest[:end]}
		for more := true; more; { // behind = and behind each comma
			l.rest = l.rest[end+1:]
			item, err := l.item()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			w.items = append(w.items, item)
			end, more = 0, strings.HasPrefix(l.rest, ",")
		}
		words = append(words, w)
	}
	return words, nil
}

type lexer struct{ rest string }

func (l *lexer) skipBlanks() { l.rest = strings.TrimLeft(l.rest, " \t\n\r") }

// item reads up to a comma, a blank or the end.
func (l *lexer) item() (gridItem, error) {
	var item gridItem
	var b strings.Builder
	for l.rest != "" && !strings.ContainsRune(", \t\n\r", rune(l.rest[0])) {
		c := l.rest[0]
		l.rest = l.rest[1:]
		if c != '\'' && c != '"' && c != '\\' {
			b.WriteByte(c)
			continue
		}
		item.quoted = true
		text, err := l.quoted(c)
		if err != nil {
			return item, err
		}
		b.WriteString(text)
	}
	item.text = b.String()
	if item.text == "" && !item.quoted {
		return item, errEmpty
	}
	return item, nil
}

// quoted reads what follows a quote or a backslash.
func (l *lexer) quoted(mark byte) (string, error) {
	if mark == '\\' {
		if l.rest == "" {
			return "", errors.New("it ends in a backslash that escapes nothing")
		}
		c := l.rest[:1]
		l.rest = l.rest[1:]
		return c, nil
	}
	var b strings.Builder
	for l.rest != "" {
		c := l.rest[0]
		l.rest = l.rest[1:]
		switch {
		case c == mark:
			return b.String(), nil
		case c == '\\' && mark == '"' && l.rest != "" && strings.IndexByte(`"\`, l.rest[0]) >= 0:
			b.WriteByte(l.rest[0])
			l.rest = l.rest[1:]
		default:
			b.WriteByte(c)
		}
	}
	return "", errQuote
}
