package sweep

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Template is an input with places for parameters: --rate {a} --mode "{b}, {c}". A template quotes each value, so
// that the value stays within one word. {a|raw} inserts the value without quotes. {{ and }} stand for braces.
type Template struct{ parts []part }

// A part of a template is a text, followed by the place of a parameter.
type part struct {
	text   string
	name   string // name of the parameter; "" in the last part
	raw    bool
	within quoting
}

// ParseTemplate parses a template. It returns an error if no row could turn the template into a valid input.
func ParseTemplate(text string) (*Template, error) {
	if len(text) > task.MaxInput {
		return nil, fmt.Errorf("parse template: it has %d bytes; want at most %d", len(text), task.MaxInput)
	}
	p := parser{rest: text}
	for p.rest != "" {
		if err := p.step(); err != nil {
			return nil, fmt.Errorf("parse template %.1000q: %w", text, err)
		}
	}
	t := &Template{append(p.parts, part{text: p.text.String()})}
	trial := t.fill(func(p part) string { return p.within.quote("x") })
	if _, err := task.SplitInput(trial); err != nil {
		return nil, fmt.Errorf("parse template %.1000q: %w", text, err)
	}
	return t, nil
}

// A parser parses a template. It follows quotes in the same way as task.SplitInput, to know the quotes around each
// place.
type parser struct {
	rest   string
	parts  []part
	text   strings.Builder
	within quoting
}

var (
	errOpenBrace  = errors.New("a { is not closed; a brace itself is written {{")
	errCloseBrace = errors.New("a } closes nothing; a brace itself is written }}")
	errEscaped    = errors.New(
		`a backslash right before a parameter would escape its quotes; a backslash itself is written \\`)
)

func (p *parser) step() error {
	c := p.rest[0]
	switch {
	case strings.HasPrefix(p.rest, "{{"), strings.HasPrefix(p.rest, "}}"):
		p.take(1)
		p.rest = p.rest[1:]
	case c == '{':
		return p.place()
	case c == '}':
		return errCloseBrace
	case c == '\\' && p.within != single:
		return p.escape()
	default:
		p.quote(c)
		p.take(1)
	}
	return nil
}

func (p *parser) take(n int) {
	p.text.WriteString(p.rest[:n])
	p.rest = p.rest[n:]
}

// quote changes the parser's quoting if c begins or ends quotes.
func (p *parser) quote(c byte) {
	mark := map[byte]quoting{'\'': single, '"': double}[c]
	switch {
	case mark == bare:
	case p.within == bare:
		p.within = mark
	case p.within == mark:
		p.within = bare
	}
}

// escape parses a backslash and the escaped character. A brace must be doubled even after a backslash.
func (p *parser) escape() error {
	next := p.rest[1:]
	switch {
	case strings.HasPrefix(next, "{{"), strings.HasPrefix(next, "}}"), next == "":
		p.take(1)
	case next[0] == '{':
		return errEscaped
	case next[0] == '}':
		return errCloseBrace
	default:
		p.take(2)
		return nil
	}
	if p.rest != "" {
		return p.step()
	}
	return nil
}

const rawSuffix = "|raw"

func (p *parser) place() error {
	name, rest, closed := strings.Cut(p.rest[1:], "}")
	if !closed || strings.Contains(name, "{") {
		return errOpenBrace
	}
	name, raw := strings.CutSuffix(name, rawSuffix)
	if name = strings.TrimSpace(name); name == "" {
		return errors.New("{} names no parameter")
	}
	p.parts = append(p.parts, part{p.text.String(), name, raw, p.within})
	p.text.Reset()
	p.rest = rest
	return nil
}

// Fill returns the input that the template makes from a row. If a parameter is missing or contains a NUL byte, the
// error names the parameter.
func (t *Template) Fill(row *Row) (string, error) {
	var wrong error
	input := t.fill(func(p part) string {
		i := row.index(p.name)
		if i < 0 {
			wrong = fmt.Errorf("no parameter %s; the parameters are %s", p.name, strings.Join(row.names(), ", "))
			return ""
		}
		if err := row.Params[i].checkText(); err != nil {
			wrong = err
		}
		return p.put(row.Params[i].Text)
	})
	if wrong != nil {
		return "", wrong
	}
	return checkInput(input)
}

func (p *part) put(value string) string {
	if p.raw {
		return value
	}
	return p.within.quote(value)
}

func (t *Template) fill(value func(part) string) string {
	var b strings.Builder
	for _, p := range t.parts {
		if b.Len() > task.MaxInput { // no program accepts it, and few places could make it very large
			break
		}
		b.WriteString(p.text)
		if p.name != "" {
			b.WriteString(value(p))
		}
	}
	return b.String()
}
