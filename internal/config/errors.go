package config

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/task"
)

// An Error says why a configuration is invalid. Its text is one line without passwords. Commands that return it exit
// with status 2 (docs/configuration.md, "Errors").
type Error struct {
	Source  string // the file's path, or the name of the environment variable
	Section string // "" if the error concerns the whole file or an unknown variable
	Key     string // "" if the error concerns the whole section
	Problem string // what is wrong, and which values are valid
	Err     error  // the operating system's error when the file was read, or nil
}

func (e *Error) Error() string {
	parts := []string{printable(e.Source)}
	if place := e.place(); place != "" {
		parts = append(parts, place)
	}
	return strings.Join(append(parts, e.Problem), ": ")
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*Error) Code() task.Code { return task.CodeInvalid }

// Locate sets the Source of an Error that a caller creates after it has loaded the configuration. The Source is the
// key's environment variable if the variable is set, and otherwise the file.
func (e *Error) Locate(file string) {
	e.Source = file
	if k := find(e.Section, e.Key); k != nil {
		if _, set := os.LookupEnv(k.env()); set {
			e.Source = k.env()
		}
	}
}

// Unwrap returns Err, so that errors.Is(err, fs.ErrNotExist) works.
func (e *Error) Unwrap() error { return e.Err }

// place returns the section and the key. It returns "" if the source is an environment variable, because the variable's
// name contains both.
func (e *Error) place() string {
	switch {
	case e.Section == "" || strings.HasPrefix(e.Source, envPrefix):
		return ""
	case e.Key == "":
		return "[" + printable(e.Section) + "]"
	}
	return fmt.Sprintf("[%s] %s", printable(e.Section), printable(e.Key))
}

// printable shortens s, and quotes it if it contains unprintable characters.
func printable(s string) string {
	s = short(s)
	if strings.ContainsFunc(s, notPrintable) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// quote shortens and quotes a value.
func quote(s string) string { return strconv.Quote(short(s)) }

func short(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
