package rounddir

import (
	"path"
	"slices"
	"strings"
)

// A matcher matches paths against patterns, one element after the other. So the time for a path grows with the length
// of the patterns, for all patterns. The element ** matches any number of elements, also none.
type matcher struct{ patterns [][]string }

// A place is how far a path has matched a pattern.
type place struct{ pattern, element int }

// A match is what the beginning of a path has matched.
type match struct {
	places []place
	whole  bool // it matches a pattern, and so do all paths that begin with it
}

func newMatcher(patterns []string) matcher {
	var m matcher
	for _, p := range patterns {
		m.patterns = append(m.patterns, strings.Split(p, "/"))
	}
	return m
}

// begin returns the match of the empty path.
func (m matcher) begin() (all match) {
	for i := range m.patterns {
		m.add(&all, place{i, 0})
	}
	return all
}

func (m matcher) add(to *match, p place) {
	if slices.Contains(to.places, p) {
		return
	}
	elements := m.patterns[p.pattern]
	if p.element == len(elements) {
		to.whole = true
		return
	}
	to.places = append(to.places, p)
	if elements[p.element] == "**" {
		m.add(to, place{p.pattern, p.element + 1})
	}
}

// step returns the match of a path that is one element longer.
func (m matcher) step(from match, name string) (next match) {
	next.whole = from.whole
	for _, p := range from.places {
		element := m.patterns[p.pattern][p.element]
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

// mayMatch reports whether the path, or a longer one, may match.
func (m match) mayMatch() bool { return m.whole || len(m.places) > 0 }
