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

// Linux's limits for paths and names.
const (
	maxPathBytes = 4095
	maxNameBytes = 255
)

// localName returns the clean form of an entry's name. "." is the top of the archive. localName returns an error if the
// name is invalid, or if its meaning depends on the system.
func localName(name string, depth int) (string, error) {
	switch {
	case name == "":
		return "", errors.New("has no name")
	case len(name) > maxPathBytes:
		return "", fmt.Errorf("has a name of %d bytes (at most %d)", len(name), maxPathBytes)
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
		return "", errors.New("has .. in its name")
	}
	if slices.ContainsFunc(parts, func(p string) bool { return len(p) > maxNameBytes }) {
		return "", fmt.Errorf("has a part of more than %d bytes in its name", maxNameBytes)
	}
	clean := path.Clean(name)
	if n := strings.Count(clean, "/"); n > depth {
		return "", fmt.Errorf("is nested %d directories deep, more than %d (max_program_depth)", n, depth)
	}
	return clean, nil
}
