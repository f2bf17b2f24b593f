package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/format"
)

// maxSimilar is the maximum number of names that an error suggests.
const maxSimilar = 3

// didYouMean returns "; did you mean a or b?" with the names that are most similar to a typed name, or ";" if none is
// similar. The function show returns how a name is typed.
func didYouMean(typed string, names []string, show func(string) string) string {
	var similar []string
	best := 0
	for _, name := range names {
		d, ok := misspelt(typed, name)
		if !ok || len(similar) > 0 && d > best {
			continue
		}
		if d < best {
			similar = nil
		}
		similar, best = append(similar, format.OneLine(show(name), 200)), d
	}
	if len(similar) == 0 {
		return ";"
	}
	slices.Sort(similar)
	return "; did you mean " + strings.Join(similar[:min(len(similar), maxSimilar)], " or ") + "?"
}

// misspelt returns how many characters differ between a typed text and a name, and whether a user may have meant the
// name: few characters differ, or the typed text is the beginning of the name.
func misspelt(typed, name string) (d int, ok bool) {
	a, b := []rune(strings.ToLower(typed)), []rune(strings.ToLower(name))
	const most = 2
	switch {
	case min(len(a), len(b)) == 0 || max(len(a), len(b)) > 1000:
		return 0, false
	case len(a) > most && len(a) < len(b) && strings.HasPrefix(string(b), string(a)):
		return 1, true
	}
	d = distance(a, b)
	return d, d <= most && 2*d <= len(a)
}

// distance returns the Levenshtein distance of two texts.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1) // the distances of the beginning of a to the beginnings of b
	for j := range row {
		row[j] = j
	}
	for i, r := range a {
		before := row[0]
		row[0] = i + 1
		for j, s := range b {
			change := before
			if r != s {
				change++
			}
			before, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// flagNames returns the names of the flags that --help lists.
func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			names = append(names, f.Name)
		}
	})
	return names
}
