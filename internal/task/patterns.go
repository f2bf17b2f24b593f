package task

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Limits of the property fetch: the number of patterns, and the bytes of all of them together. A pattern for the names
// of programs has at most as many bytes.
const (
	MaxPatterns     = 16
	maxPatternBytes = 1 << 10
)

// Limits of a regular expression. For the last 64 KiB of an output, they limit its time to about half a second.
const (
	maxRegexpBytes  = 200
	maxInstructions = 300
)

// ParseRegexp parses a regular expression that a user has written. Its error says which limit it exceeds, before it is
// compiled: some bytes such as (a{9}){99} would need much memory and time.
func ParseRegexp(text string) (*regexp.Regexp, error) {
	if len(text) > maxRegexpBytes {
		return nil, fmt.Errorf("it is longer than %d bytes", maxRegexpBytes)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("it is no regular expression: %w", err)
	}
	if instructions(parsed) > maxInstructions {
		return nil, errors.New("it repeats too much; write fewer or smaller repetitions")
	}
	return regexp.Compile(text)
}

// instructions returns about how many instructions a regular expression is compiled to. The package syntax refuses
// nested repetitions of more than 1,000 together, so that the product stays small.
func instructions(of *syntax.Regexp) int {
	n := 1
	if of.Op == syntax.OpLiteral {
		n = len(of.Rune)
	}
	for _, sub := range of.Sub {
		n += instructions(sub)
	}
	if of.Op == syntax.OpRepeat {
		n *= max(of.Min, of.Max, 1)
	}
	return n
}

// wrongGlob says why a pattern with wildcards is invalid. It returns "" for a valid one.
func wrongGlob(p string) string {
	if len(p) > maxPatternBytes {
		return fmt.Sprintf("has more than %d bytes", maxPatternBytes)
	}
	if _, err := path.Match(p, ""); err != nil {
		return "is no pattern: * and ? are wildcards, and each [ needs a ]"
	}
	return ""
}

// Files says how many files a round has brought back, and how many bytes they have (docs/programs.md, "Files that a
// round brings back").
type Files struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`

	Kept string `json:"kept,omitempty"` // why files that match stay on the worker, and where; "" if none do
}

// patterns is the kind of a list of patterns for paths.
func patterns() kind[[]string, []string] {
	k := list("up to "+strconv.Itoa(MaxPatterns)+" patterns of paths, separated by commas", checkPatterns, joinPatterns)
	k.unit = UnitPatterns
	return k
}

func joinPatterns(all []string) string { return strings.Join(all, ",") }

// checkPatterns refuses patterns that could match a file outside of the directory.
func checkPatterns(name string, all []string) error {
	if len(all) > MaxPatterns {
		return invalidProperty(name, "there are %d patterns; at most %d are allowed", len(all), MaxPatterns)
	}
	if n := len(joinPatterns(all)); n > maxPatternBytes {
		return invalidProperty(name, "the patterns have %d bytes; at most %d are allowed", n, maxPatternBytes)
	}
	for _, p := range all {
		reason := wrongPattern(p)
		if reason != "" {
			return invalidProperty(name, "%q %s", shorten(p), reason)
		}
	}
	return nil
}

// wrongPattern says why a pattern is invalid. It returns "" for a valid one.
func wrongPattern(p string) string {
	parts := strings.Split(p, "/")
	wrong := wrongPath(p)
	switch {
	case strings.Contains(wrong, "comma"), strings.Contains(wrong, "blank"):
		return wrong + "; write ? for it"
	case wrong != "":
		return wrong
	case wrongGlob(p) == "" && slices.ContainsFunc(parts, func(part string) bool { return wrongGlob(part) != "" }):
		return "has a / between [ and ]"
	}
	return wrongGlob(p)
}

// checkFetch returns an error if a task fetches files from a directory that does not belong to the round.
func (d *Properties) checkFetch() error {
	dir, isCommand := strings.CutPrefix(d.Source, SchemeExec+":")
	if len(d.Fetch) == 0 || !isCommand || dir == "" {
		return nil
	}
	return invalidProperty(fieldFetch, "a command in %s leaves its files there; want the source exec: or a program", dir)
}
