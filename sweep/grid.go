package sweep

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Grid is a sweep. Its points are all combinations of the values of its parameters.
type Grid struct {
	axes  []axis
	names nameSet
}

// An axis is a parameter of a grid. Its values come from its spans.
type axis struct {
	name  string
	spans []span
	ends  []int64 // the number of values up to the end of each span
	count int64   // number of values
}

// maxPoints is the maximum number of points of a grid. Without it, a mistyped number could fill the memory of this
// machine and of Redis: a task needs about 1 KiB in Redis, and about 100 bytes in the tally of tdf open.
const maxPoints = 10_000_000

// ParseGrid parses a grid such as a=1..10 b=x,y c=0.1..0.5/0.1. Blanks separate parameters, and commas separate
// values.
//   - A range goes up or down from its first number. It includes its last number if a step reaches that number.
//   - The step follows a slash. The default step of a range of whole numbers is 1. Other ranges need a step.
//   - Decimals are exact, and may have exponents: 1e-3..5e-3/1e-3 is 0.001, 0.002 and so on.
//   - Quotes ('…', "…", \) work as in an input: blanks, commas and dots within quotes are text.
//   - 1-10 and 1:10 are errors, because most users mean ranges by them. Within quotes, they are text.
func ParseGrid(text string) (*Grid, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("parse grid %.1000q: %w", text, errNotUTF8)
	}
	g := &Grid{names: nameSet{}}
	words, err := splitGrid(text)
	if err != nil {
		return nil, fmt.Errorf("parse grid %.1000q: %w", text, err)
	}
	for _, w := range words {
		if err := g.add(w); err != nil {
			return nil, fmt.Errorf("parse grid %.1000q: %w", text, err)
		}
	}
	if len(g.axes) == 0 {
		return nil, errors.New("parse grid: the grid is empty; write parameters such as a=1..10 b=x,y")
	}
	if g.Len() > maxPoints {
		return nil, fmt.Errorf("parse grid %.1000q: more than %d points", text, maxPoints)
	}
	return g, nil
}

// Len returns the number of points.
func (g *Grid) Len() int64 {
	n := int64(1)
	for _, a := range g.axes {
		n = min(n*a.count, maxPoints+1) // each of them has at most maxPoints
	}
	return n
}

// Rows returns a row for each point. The last parameter changes fastest. The error is always nil.
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
	at, _ := slices.BinarySearch(a.ends, i+1)
	s := &a.spans[at]
	return s.value(i - (a.ends[at] - s.count))
}

func (g *Grid) add(w gridWord) error {
	a := axis{name: w.name}
	if err := g.names.add(a.name); err != nil {
		return err
	}
	for _, item := range w.items {
		if suggested := item.suggestion(); suggested != "" {
			return fmt.Errorf("%s=%s: did you mean %s=%s? Quote it if it is text: %s='%s'", a.name, item.text, a.name,
				suggested, a.name, item.text)
		}
		s, err := parseSpan(item)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		a.spans = append(a.spans, s)
		if a.count += s.count; a.count > maxPoints {
			return fmt.Errorf("%s has more than %d values", a.name, maxPoints)
		}
		a.ends = append(a.ends, a.count)
	}
	g.axes = append(g.axes, a)
	return nil
}

// A gridWord is a parameter with its values, as the user wrote them.
type gridWord struct {
	name  string
	items []gridItem
}

type gridItem struct {
	text   string
	quoted bool // a part of the item was in quotes, so the item is not a range
}

var (
	errNoEquals = errors.New("write NAME=VALUES, such as a=1..10 or b=x,y")
	errQuote    = errors.New("a quote is not closed")
	errEmpty    = errors.New("a value is empty; write '' for an empty text")
)

// splitGrid splits the text at blanks and commas outside quotes.
func splitGrid(text string) ([]gridWord, error) {
	l := lexer{rest: text}
	var words []gridWord
	for l.skipBlanks(); l.rest != ""; l.skipBlanks() {
		end := strings.IndexAny(l.rest, "= \t\n\r")
		if end < 0 || l.rest[end] != '=' {
			return nil, errNoEquals
		}
		w := gridWord{name: l.rest[:end]}
		for more := true; more; { // an item follows the equals sign and each comma
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

// item reads an item, which ends at the next comma, at the next blank, or at the end of the text.
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
		text, err := l.readQuoted(c)
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

// readQuoted reads the text after an opening quote, or the character after a backslash.
func (l *lexer) readQuoted(mark byte) (string, error) {
	if mark == '\\' {
		if l.rest == "" {
			return "", errors.New("a backslash at the end escapes nothing")
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
