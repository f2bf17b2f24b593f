package task

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxInput is the maximum length of a task's input in bytes. It is the longest argument that Linux passes to a program.
const MaxInput = 128<<10 - 1

var (
	errUnbalanced = errors.New("a quote is not closed")
	errTrailing   = errors.New("it ends in a backslash that escapes nothing")
	errNewline    = errors.New(
		"a line break outside quotes would end the command; quote the line break, or use a space")
)

// InputEncoding says what the input of a task is (docs/programs.md, "Inputs of any bytes").
type InputEncoding string

// The encodings.
const (
	InputWords  InputEncoding = "words"  // the arguments of run.sh; this is the default
	InputBase64 InputEncoding = "base64" // any bytes, in the alphabet of RFC 4648 with padding
)

// Arguments returns the arguments of run.sh. If the input has any bytes, there are none, and data has the bytes;
// otherwise data is nil.
func (d *Properties) Arguments() (args []string, data []byte, err error) {
	if d.InputEncoding != InputBase64 {
		args, err = SplitInput(d.Input)
		return args, nil, err
	}
	if data, err = base64.StdEncoding.Strict().DecodeString(d.Input); err != nil {
		return nil, nil, errors.New("it is not base64, as input_encoding says")
	}
	return nil, append([]byte{}, data...), nil
}

// Label returns the input as people see it in lists. If the input has any bytes, this is the member `call` of the meta,
// or the function that the input names, with the parameters: base64 says nothing (docs/python.md, "Run functions").
func (d *Definition) Label() string { return labelOf(d.Input, d.InputEncoding, d.Meta) }

// Label is like [Definition.Label].
func (p *Properties) Label() string { return labelOf(p.Input, p.InputEncoding, p.Meta) }

func labelOf(input string, encoding InputEncoding, meta string) string {
	var of struct{ Call string }
	if encoding != InputBase64 {
		return input
	}
	if function := functionOf(input); function != "" {
		return function + "(" + argumentsOf(meta) + ")"
	}
	if json.Unmarshal([]byte(meta), &of) == nil && of.Call != "" {
		return of.Call
	}
	return input
}

// FunctionProgram is the program of the tasks that call functions in Python (docs/python.md, "Run functions"). Those of
// a sweep have the function in their input, whose first line names it: #!tdf.call PYTHON MODULE:FUNCTION. Their
// parameters are only in the meta.
const FunctionProgram = "tdf.call"

// CallsFunction reports whether the task is one of a sweep of a function, so that its input does not depend on its
// parameters.
func (p *Properties) CallsFunction() bool {
	return p.InputEncoding == InputBase64 && functionOf(p.Input) != ""
}

const (
	maxNaming    = 2 << 10 // characters of base64 in which the first line ends
	maxArguments = 200     // bytes of the arguments in a label
)

// functionOf returns the name of the function that a sweep in Python calls, or "" if the input is another one.
func functionOf(input string) string {
	prefix := input[:min(len(input), maxNaming)&^3] // whole groups of base64
	data, _ := base64.StdEncoding.DecodeString(prefix)
	line, _, _ := strings.Cut(string(data), "\n")
	named, found := strings.CutPrefix(line, "#!"+FunctionProgram+" ")
	_, function, whole := strings.Cut(named, ":")
	if !found || !whole || !utf8.ValidString(function) {
		return ""
	}
	return function
}

// argumentsOf returns parameters as the arguments of a function: rate=0.1, mode="fast".
func argumentsOf(meta string) string {
	d := json.NewDecoder(strings.NewReader(meta))
	_, _ = d.Token()
	var all []string
	for size := 0; d.More(); {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		one := fmt.Sprintf("%v=%s", name, value)
		if size += len(one); size > maxArguments {
			return strings.Join(append(all, "…"), ", ")
		}
		all = append(all, one)
	}
	return strings.Join(all, ", ")
}

// SplitInput splits a task's input into the arguments of run.sh. It follows the rules by which a POSIX shell splits a
// command into words. It splits at blanks, and understands '…', "…" and backslashes. It expands nothing: $, ;, * and >
// are ordinary characters (docs/programs.md, "Input").
func SplitInput(input string) ([]string, error) {
	if input != "" && onlyBlanks(input) {
		return strings.FieldsFunc(input, func(c rune) bool { return c == ' ' || c == '\t' }), nil
	}
	s := splitter{rest: input}
	for s.rest != "" {
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	s.endWord()
	return s.words, nil
}

// onlyBlanks reports whether nothing but blanks separates the words of an input, and nothing is quoted.
func onlyBlanks(input string) bool { return !strings.ContainsAny(input, "\\'\"\n") }

// splitter holds the unread rest of the input and the current word.
type splitter struct {
	rest   string
	words  []string
	word   strings.Builder
	inWord bool // whether a word has begun; the word may still be empty, as after ''
}

// special are the bytes that do not simply belong to a word.
const special = " \t\n\\'\""

func (s *splitter) step() error {
	if n := strings.IndexAny(s.rest, special); n != 0 {
		if n < 0 {
			n = len(s.rest)
		}
		s.word.WriteString(s.rest[:n])
		s.rest, s.inWord = s.rest[n:], true
		return nil
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	switch c {
	case ' ', '\t':
		s.endWord()
		return nil
	case '\n':
		return errNewline
	}
	if c == '\\' && strings.HasPrefix(s.rest, "\n") {
		s.rest = s.rest[1:] // an escaped line break is dropped and does not separate words
		return nil
	}
	s.inWord = true
	switch c {
	case '\'':
		return s.single()
	case '"':
		return s.double()
	default:
		return s.escape()
	}
}

func (s *splitter) endWord() {
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

func (s *splitter) single() error {
	text, rest, closed := strings.Cut(s.rest, "'")
	if !closed {
		return errUnbalanced
	}
	s.word.WriteString(text)
	s.rest = rest
	return nil
}

// double adds the text up to the closing double quote to the word. Between double quotes, a backslash escapes only $ `
// " \ and a line break.
func (s *splitter) double() error {
	for s.rest != "" {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '"':
			return nil
		case c == '\\' && s.rest != "" && strings.IndexByte("$`\"\\\n", s.rest[0]) >= 0:
			if err := s.escape(); err != nil {
				return err
			}
		default:
			s.word.WriteByte(c)
		}
	}
	return errUnbalanced
}

// escape adds the next byte to the word unchanged. It drops an escaped line break.
func (s *splitter) escape() error {
	if s.rest == "" {
		return errTrailing
	}
	if s.rest[0] != '\n' {
		s.word.WriteByte(s.rest[0])
	}
	s.rest = s.rest[1:]
	return nil
}
