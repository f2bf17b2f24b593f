package results

import (
	"regexp"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// outputSearched is how many bytes of an output a pattern searches.
const outputSearched = 64 << 10

// ParsePattern parses a regular expression, which gives values of the last line that it matches, in the last 64 KiB of
// an output: each group with a name has a column "match.NAME". Without named groups, the column "match" has the first
// group, or the whole match. For "", it returns nil.
func ParsePattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	pattern, err := task.ParseRegexp(text)
	if err != nil {
		return nil, task.NewError(task.CodeInvalid, "invalid pattern: "+err.Error())
	}
	return pattern, nil
}

// matches returns the values of a pattern in the last line of an output that it matches, by the names of their columns.
func matches(pattern *regexp.Regexp, output string) map[string]string {
	output = output[max(0, len(output)-outputSearched):]
	var found []string
	// each line is searched once, so that the time does not depend on the number of matches
	for more := true; more && found == nil; {
		end := strings.LastIndexAny(output, "\r\n")
		found = pattern.FindStringSubmatch(output[end+1:])
		output, more = output[:max(0, end)], end >= 0
	}
	values := map[string]string{}
	for i, name := range pattern.SubexpNames() {
		if name != "" && found != nil {
			values[matchName(name)] = found[i]
		}
	}
	if len(values) == 0 && found != nil {
		values[matchName("")] = found[min(1, pattern.NumSubexp())]
	}
	return values
}

func matchName(group string) string {
	if group == "" {
		return "match"
	}
	return "match." + group
}
