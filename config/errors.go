package config

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Error says what is wrong with a configuration, in one line that never holds a password.
// The commands exit with status 2 on it (docs/configuration.md, "Errors").
type Error struct {
	Source  string // the file's path, or the name of the environment variable
	Section string // "" where the fault is the file's, or the variable is unknown
	Key     string // "" where the fault is the section's
	Problem string // what was found, and what was expected
	Err     error  // of the operating system, when the file could not be read; else nil
}

func (e *Error) Error() string {
	parts := []string{printable(e.Source)}
	if place := e.place(); place != "" {
		parts = append(parts, place)
	}
	return strings.Join(append(parts, e.Problem), ": ")
}

// Locate completes an error that was found after loading, of one who knows the value but not where it
// came from: from the variable of its key, if that is set, and else from the file.
func (e *Error) Locate(file string) {
	e.Source = file
	if k := find(e.Section, e.Key); k != nil {
		if _, set := os.LookupEnv(k.env()); set {
			e.Source = k.env()
		}
	}
}

// Unwrap gives errors.Is(err, fs.ErrNotExist) its answer.
func (e *Error) Unwrap() error { return e.Err }

// place is empty for a variable: its name says the section and the key.
func (e *Error) place() string {
	switch {
	case e.Section == "" || strings.HasPrefix(e.Source, envPrefix):
		return ""
	case e.Key == "":
		return "[" + printable(e.Section) + "]"
	}
	return fmt.Sprintf("[%s] %s", printable(e.Section), printable(e.Key))
}

// printable keeps an error on one line, whatever a path, a name or a variable is made of.
func printable(s string) string {
	s = short(s)
	if strings.ContainsFunc(s, notPrintable) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// quote shows a value that was found.
func quote(s string) string { return strconv.Quote(short(s)) }

func short(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
