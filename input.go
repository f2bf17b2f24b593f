package tdf

import (
	"errors"
	"strings"
)

// MaxInput is the length in bytes that a task's input may have: what Linux can pass to a
// program as one argument.
const MaxInput = 128<<10 - 1

var (
	errUnbalanced = errors.New("a quote is not closed")
	errTrailing   = errors.New("it ends in a backslash that escapes nothing")
	errNewline    = errors.New("a line break outside quotes would end the command; quote it, or use a space")
)

// SplitInput splits a task's input into the arguments of run.sh as a POSIX shell splits a
// command into words: at blanks, with '…', "…" and backslashes taken as quotes. Nothing is
// expanded: $, ;, *, > and the rest are plain characters (docs/programs.md, "Input").
func SplitInput(input string) ([]string, error) {
	s := splitter{rest: input}
	for s.rest != "" {
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	s.endWord()
	return s.words, nil
}

// splitter holds what is left to read and the word that is being put together.
type splitter struct {
	rest   string
	words  []string
	word   strings.Builder
	inWord bool // also for a word that is empty so far: a pair of quotes
}

func (s *splitter) step() error {
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
		s.rest = s.rest[1:] // a continued line: neither a blank nor a word
		return nil
	}
	s.inWord = true
	switch c {
	case '\'':
		return s.single()
	case '"':
		return s.double()
	case '\\':
		return s.escape()
	}
	s.word.WriteByte(c)
	return nil
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

// double reads up to the closing quote; in there a backslash escapes only $ ` " \ and a line break.
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

// escape takes the next byte as it is; an escaped line break is none at all.
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
