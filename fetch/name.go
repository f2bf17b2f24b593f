package fetch

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What Linux takes for a name.
const (
	mostPathBytes = 4095
	mostNameBytes = 255
)

// localName returns the clean form of an entry's name, "." for the archive's top, or says why
// nothing is unpacked under that name. Names that mean different things to different systems
// are refused, and not repaired.
func localName(name string, depth int) (string, error) {
	switch {
	case name == "":
		return "", errors.New("has no name")
	case len(name) > mostPathBytes:
		return "", fmt.Errorf("has a name of %d bytes (at most %d)", len(name), mostPathBytes)
	case !utf8.ValidString(name):
		return "", errors.New("has a name that is not UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", errors.New("has a control character in its name")
	case strings.Contains(name, `\`):
		return "", errors.New("has a backslash in its name")
	case strings.HasPrefix(name, "/"):
		return "", errors.New("has an absolute name")
	}
	parts := strings.Split(name, "/")
	if slices.Contains(parts, "..") {
		return "", errors.New("has .. in its name, which leaves the directory")
	}
	if slices.ContainsFunc(parts, func(p string) bool { return len(p) > mostNameBytes }) {
		return "", fmt.Errorf("has a part of more than %d bytes in its name", mostNameBytes)
	}
	clean := path.Clean(name)
	if n := strings.Count(clean, "/"); n > depth {
		return "", fmt.Errorf("is nested %d directories deep, more than %d (max_program_depth)", n, depth)
	}
	return clean, nil
}
