package tdf

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a task's properties.
const (
	MaxName  = 200           // of program and group, in bytes
	MaxMeta  = 4 << 10       // of meta, in bytes
	MaxCount = 1_000_000_000 // of max_fails, max_timeouts, max_losses

	maxCount = MaxCount // of whatever else is counted about a task
)

// A PropertyError says which property of a task makes no sense, and why.
type PropertyError struct {
	Property string // its name in Redis, such as "end_before"
	Reason   string
}

func (e *PropertyError) Error() string { return e.Property + ": " + e.Reason }

func invalidProperty(name, format string, args ...any) error {
	return &PropertyError{Property: name, Reason: fmt.Sprintf(format, args...)}
}

// Validate returns a *[PropertyError] for the first property that makes no sense, or nil.
// Opening a task calls it; the server calls it for tasks that came by other hands.
func (d *Properties) Validate() error {
	for _, check := range []func() error{
		d.checkProgram, d.checkSource, d.checkInput, d.checkTimes, d.checkCounts, d.checkTexts,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Properties) checkProgram() error {
	p := d.Program
	switch {
	case p == "":
		return invalidProperty("program", "is empty; it names the directory of the program on a worker")
	case strings.ContainsAny(p, "/\\"):
		return invalidProperty("program", "%q has a slash in it; it names one directory", p)
	case p[0] == '.' || p[0] == '-':
		return invalidProperty("program", "%q begins with %q", p, p[:1])
	}
	return checkName("program", p)
}

// checkName refuses what does not belong into the name of a key or a directory.
func checkName(name, s string) error {
	switch {
	case len(s) > MaxName:
		return invalidProperty(name, "has %d bytes; at most %d are allowed", len(s), MaxName)
	case !utf8.ValidString(s):
		return invalidProperty(name, "%q is not valid UTF-8", s)
	case strings.IndexFunc(s, unicode.IsControl) >= 0:
		return invalidProperty(name, "%q has a control character in it", s)
	}
	return nil
}

func (d *Properties) checkSource() error {
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
		return invalidProperty("input", "has a NUL byte in it, which no argument of a program can have")
	}
	if _, err := SplitInput(d.Input); err != nil {
		return invalidProperty("input", "%v", err)
	}
	return nil
}

func (d *Properties) checkTimes() error {
	switch {
	case !validSeconds(float64(d.StartAfter)) || d.StartAfter == Never:
		return invalidProperty("start_after", "%v is not a unix time in seconds", float64(d.StartAfter))
	case !validSeconds(float64(d.EndBefore)):
		return invalidProperty("end_before", "%v is not a unix time in seconds, or inf", float64(d.EndBefore))
	case d.EndBefore <= d.StartAfter:
		return invalidProperty("end_before", "%v is not after start_after, %v: it could never run", d.EndBefore, d.StartAfter)
	case !validSeconds(float64(d.Timeout)) || d.Timeout == 0:
		return invalidProperty("timeout", "%v is not a number of seconds above 0, or inf", float64(d.Timeout))
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
		return invalidProperty("meta", "has a NUL byte in it, which no variable of a program can have")
	}
	switch d.FailOn {
	case FailOnStderr, FailOnExit, FailOnAny:
	default:
		return invalidProperty("fail_on", "%q is none of stderr, exit, any", string(d.FailOn))
	}
	return checkName("group", d.Group)
}
