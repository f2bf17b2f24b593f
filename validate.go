package tdf

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
	Property string // name of the property in Redis, such as "end_before"
	Reason   string // why it is invalid
}

func (e *PropertyError) Error() string { return e.Property + ": " + e.Reason }

func invalidProperty(name, format string, args ...any) error {
	return &PropertyError{Property: name, Reason: fmt.Sprintf(format, args...)}
}

// Validate returns a *[PropertyError] for the first invalid property, or nil. Managers call it when they open a task.
// The server validates open tasks, too, because other programs can write tasks to Redis.
func (d *Properties) Validate() error {
	for _, check := range []func() error{
		d.checkProgram, d.checkSource, d.checkInput, d.checkTimes, d.checkCounts, d.checkBackoff, d.checkRetention, d.checkUnique, d.checkQueue,
		d.checkLimitKey, d.checkDependencies, d.checkTexts,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// ValidateAll validates the properties of several tasks. The error wraps the *[PropertyError] of the first invalid task, and
// says which task it is.
func ValidateAll(all []Properties) error {
	for i := range all {
		if err := all[i].Validate(); err != nil {
			return fmt.Errorf("task %d of %d: %w", i+1, len(all), err)
		}
	}
	return nil
}

func (d *Properties) checkProgram() error {
	p := d.Program
	switch {
	case p == "":
		return invalidProperty("program", "is empty; want the name of the program's directory on a worker")
	case strings.ContainsAny(p, "/\\"):
		return invalidProperty("program", "%q contains a slash; want the name of one directory", p)
	case p[0] == '.' || p[0] == '-':
		return invalidProperty("program", "%q begins with %q; want another first character", p, p[:1])
	}
	return checkName("program", p)
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

func (d *Properties) checkSource() error {
	if d.Source == "" {
		return nil // only workers with a handler for the program run the task
	}
	if _, err := ParseSource(d.Source); err != nil {
		return invalidProperty("source", "%v", err)
	}
	return nil
}

func (d *Properties) checkInput() error {
	if len(d.Input) > MaxInput {
		return invalidProperty("input", "has %d bytes; at most %d can be passed to a program", len(d.Input), MaxInput)
	}
	if strings.IndexByte(d.Input, 0) >= 0 {
		return invalidProperty("input", "contains a NUL byte, which an argument of a program cannot contain")
	}
	if !strings.ContainsAny(d.Input, "\\'\"\n") {
		return nil // only blanks separate its words, so SplitInput would find no error
	}
	if _, err := SplitInput(d.Input); err != nil {
		return invalidProperty("input", "%v", err)
	}
	return nil
}

func (d *Properties) checkTimes() error {
	switch {
	case !validSeconds(float64(d.StartAfter)) || d.StartAfter == Never:
		return invalidProperty("start_after", "%v is not a Unix time in seconds", float64(d.StartAfter))
	case !validSeconds(float64(d.EndBefore)):
		return invalidProperty("end_before", "%v is neither a Unix time in seconds nor inf", float64(d.EndBefore))
	case d.EndBefore <= d.StartAfter:
		return invalidProperty("end_before", "%v is not after start_after, %v; the task could never run", d.EndBefore, d.StartAfter)
	case !validSeconds(float64(d.Timeout)) || d.Timeout == 0:
		return invalidProperty("timeout", "%v is neither a number of seconds above 0 nor inf", float64(d.Timeout))
	}
	return nil
}

func (d *Properties) checkCounts() error {
	for _, c := range []struct {
		name  string
		value int
	}{{"max_fails", d.MaxFails}, {"max_timeouts", d.MaxTimeouts}, {"max_losses", d.MaxLosses}} {
		if c.value < 0 || c.value > MaxCount {
			return invalidProperty(c.name, "%d is not a number from 0 to %d", c.value, MaxCount)
		}
	}
	return nil
}

func (d *Properties) checkTexts() error {
	if len(d.Meta) > MaxMeta {
		return invalidProperty("meta", "has %d bytes; at most %d are allowed", len(d.Meta), MaxMeta)
	}
	if strings.IndexByte(d.Meta, 0) >= 0 {
		return invalidProperty("meta", "contains a NUL byte, which an environment variable of a program cannot contain")
	}
	switch d.FailOn {
	case FailOnStderr, FailOnExit, FailOnAny:
	default:
		return invalidProperty("fail_on", "%q is unknown; want stderr, exit or any", string(d.FailOn))
	}
	return checkName("group", d.Group)
}
