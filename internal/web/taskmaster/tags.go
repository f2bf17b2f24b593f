package taskmaster

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/web/wire"
)

const longestTag = 64

// checkTags returns an error if a tag has not 1 to 64 characters.
func checkTags(tags []string) error {
	for _, tag := range tags {
		if n := utf8.RuneCountInString(tag); n < 1 || n > longestTag {
			return wire.Invalid(fmt.Sprintf("tags: %.100q has %d characters; want 1 to %d", tag, n, longestTag))
		}
	}
	return nil
}

// encodeTags returns the tags of TDF for the tags of a client. TDF's lists separate tags by commas, so what they cannot
// contain is escaped as in a URL.
func encodeTags(tags []string) []string {
	out := make([]string, len(tags))
	for i, tag := range tags {
		trimmed := strings.TrimSpace(tag)
		at := strings.Index(tag, trimmed)
		for j, r := range tag {
			if r == ',' || r == '%' || unicode.IsControl(r) || j < at || j >= at+len(trimmed) {
				out[i] += url.PathEscape(string(r))
			} else {
				out[i] += string(r)
			}
		}
	}
	return out
}

// decodeTags returns the tags of a client for the tags of TDF. The tag of another client of TDF is as it is.
func decodeTags(tags []string) []string {
	out := make([]string, len(tags))
	for i, tag := range tags {
		out[i] = tag
		if text, err := url.PathUnescape(tag); err == nil && encodeTags([]string{text})[0] == tag {
			out[i] = text
		}
	}
	return out
}
