package task

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits for properties of a task.
const (
	MaxName  = 200           // maximum length of program and group in bytes
	MaxMeta  = 4 << 10       // maximum length of meta in bytes
	MaxCount = 1_000_000_000 // maximum value of max_fails, max_timeouts, max_losses and the counters
)

// A PropertyError means that a property of a task is invalid.
type PropertyError struct {
	Property string // the property, such as "end_before": its name in Redis, or in the JSON that was read
	Reason   string // why it is invalid
}

func (e *PropertyError) Error() string { return e.Property + ": " + e.Reason }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*PropertyError) Code() Code { return CodeInvalid }

func invalidProperty(name, format string, args ...any) error {
	return &PropertyError{Property: name, Reason: fmt.Sprintf(format, args...)}
}

// ValidateAll validates the properties of several tasks. The error wraps the *[PropertyError] of the first invalid
// task, and says which task it is.
func ValidateAll(all []Properties) error {
	for i := range all {
		if err := all[i].Validate(); err != nil {
			return fmt.Errorf("task %d of %d: %w", i+1, len(all), err)
		}
	}
	return nil
}

func checkProgram(name, p string) error {
	switch {
	case p == "":
		return invalidProperty(name, "is empty; want the name of the program's directory on a worker")
	case strings.ContainsAny(p, "/\\"):
		return invalidProperty(name, "%q contains a slash; want the name of one directory", p)
	case p[0] == '.' || p[0] == '-':
		return invalidProperty(name, "%q begins with %q; want another first character", p, p[:1])
	case strings.Contains(p, "~"):
		return invalidProperty(name, "%q contains ~, with which workers name copies of programs", p)
	}
	return checkName(name, p)
}

// checkName refuses names that are unsuitable for a key in Redis or for a directory.
func checkName(name, s string) error {
	switch {
	case len(s) > MaxName:
		return invalidProperty(name, "has %d bytes; at most %d are allowed", len(s), MaxName)
	case !utf8.ValidString(s):
		return invalidProperty(name, "%q is not valid UTF-8", s)
	case strings.IndexFunc(s, unicode.IsControl) >= 0:
		return invalidProperty(name, "%q contains a control character", s)
	}
	return nil
}

func checkSource(name, s string) error {
	if s == "" {
		return nil // only workers with a handler for the program run the task
	}
	if _, err := ParseSource(s); err != nil {
		return invalidProperty(name, "%v", err)
	}
	return nil
}

func checkInput(name, s string) error {
	if len(s) > MaxInput {
		return invalidProperty(name, "has %d bytes; at most %d can be passed to a program", len(s), MaxInput)
	}
	if strings.IndexByte(s, 0) >= 0 {
		return invalidProperty(name, "contains a NUL byte, which an argument of a program cannot contain")
	}
	if onlyBlanks(s) {
		return nil // SplitInput would find no error
	}
	if _, err := SplitInput(s); err != nil {
		return invalidProperty(name, "%v", err)
	}
	return nil
}

func checkMeta(name, s string) error {
	if len(s) > MaxMeta {
		return invalidProperty(name, "has %d bytes; at most %d are allowed", len(s), MaxMeta)
	}
	if strings.IndexByte(s, 0) >= 0 {
		return invalidProperty(name, "contains a NUL byte, which an environment variable of a program cannot contain")
	}
	return nil
}
