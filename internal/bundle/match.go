package bundle

import (
	"path"
	"slices"
	"strings"
)

// A Matcher matches paths against patterns, one element after the other. So the time for a path grows with the length
// of the patterns, for all patterns. The element ** matches any number of elements, also none. As in a shell, a name
// that begins with a dot matches only an element that begins with a dot.
type Matcher struct{ patterns [][]string }

// A place is how far a path has matched a pattern.
type place struct{ pattern, element int }

// A Match is what the beginning of a path has matched.
type Match struct {
	Whole  bool // it matches a pattern, and so do all paths that begin with it
	places []place
}

// NewMatcher returns a Matcher for patterns of the property fetch.
func NewMatcher(patterns []string) Matcher {
	var m Matcher
	for _, p := range patterns {
		m.patterns = append(m.patterns, strings.Split(p, "/"))
	}
	return m
}

// Begin returns the match of the empty path.
func (m Matcher) Begin() (all Match) {
	for i := range m.patterns {
		m.add(&all, place{i, 0})
	}
	return all
}

func (m Matcher) add(to *Match, p place) {
	if slices.Contains(to.places, p) {
		return
	}
	elements := m.patterns[p.pattern]
	if p.element == len(elements) {
		to.Whole = true
		return
	}
	to.places = append(to.places, p)
	if elements[p.element] == "**" {
		m.add(to, place{p.pattern, p.element + 1})
	}
}

// Step returns the match of a path that is one element longer.
func (m Matcher) Step(from Match, name string) (next Match) {
	hidden := strings.HasPrefix(name, ".")
	next.Whole = from.Whole && !hidden
	for _, p := range from.places {
		element := m.patterns[p.pattern][p.element]
		if hidden && !strings.HasPrefix(element, ".") {
			continue
		}
		if element == "**" {
			m.add(&next, p)
			continue
		}
		fits, err := path.Match(element, name)
		if fits && err == nil { // invalid patterns match nothing
			m.add(&next, place{p.pattern, p.element + 1})
		}
	}
	return next
}

// MayMatch reports whether the path, or a longer one, may match.
func (m Match) MayMatch() bool { return m.Whole || len(m.places) > 0 }

// matches reports whether a path matches a pattern.
func (m Matcher) matches(name string) bool {
	at := m.Begin()
	for element := range strings.SplitSeq(name, "/") {
		at = m.Step(at, element)
	}
	return at.Whole
}
