package selection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// An Error is an invalid text. It names the text and the valid values.
type Error struct {
	Of    string // what the text should be: id, span, time, state, outcome, older_than or newer_than
	Value string
	Want  string
}

func (e *Error) Error() string { return fmt.Sprintf("invalid %s %q: want %s", e.Of, e.Value, e.Want) }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*Error) Code() task.Code { return task.CodeInvalid }

// States returns the names of all states.
func States() []string { return names(func(task.State) bool { return true }) }

// Outcomes returns the names of all outcomes.
func Outcomes() []string { return append(names(task.State.Settled), task.Cancelled) }

func names(which func(task.State) bool) []string {
	var all []string
	for _, s := range task.States {
		if which(s) {
			all = append(all, string(s))
		}
	}
	return all
}

// oneOf returns an *[Error] for the first text that is not one of the valid values.
func oneOf(of string, texts, valid []string) error {
	for _, text := range texts {
		if !slices.Contains(valid, text) {
			return &Error{of, text, strings.Join(valid, ", ")}
		}
	}
	return nil
}

// maxIDs is the largest number of ids that ranges such as 1-500 may have together. A short text could need all memory
// otherwise.
const maxIDs = 1_000_000

// IDs reads ids and ranges of ids, such as 7 and 12-40. Together, they must be at most a million ids.
func IDs(texts []string) ([]int64, error) {
	var ids []int64
	for _, text := range texts {
		from, to, err := idRange(text)
		switch {
		case err != nil:
			return nil, err
		case to-from >= maxIDs-int64(len(ids)):
			return nil, &Error{"range", text, fmt.Sprintf("at most %d ids in all", maxIDs)}
		}
		for n := range to - from + 1 { // a condition id <= to would always hold if to is the highest int64
			ids = append(ids, from+n)
		}
	}
	return ids, nil
}

// CountIDs returns how many ids the function IDs would return, before it needs memory for them.
func CountIDs(texts []string) (n int64) {
	for _, text := range texts {
		from, to, err := idRange(text)
		if err == nil {
			n += min(to-from, maxIDs) + 1
		}
	}
	return n
}

func idRange(text string) (from, to int64, err error) {
	first, last, isRange := strings.Cut(text, "-")
	from, err = ID(first)
	to = from
	if err == nil && isRange {
		to, err = ID(last)
	}
	if err != nil || to < from {
		return 0, 0, &Error{"id", text, "a number, or a range such as 12-40"}
	}
	return from, to, nil
}

// ID reads the id of a task.
func ID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, &Error{"id", text, "a number above 0"}
	}
	return id, nil
}

// Time reads a time: Unix seconds, RFC 3339, inf, or a span from now such as +2h.
func Time(text string, now task.Time) (task.Time, error) {
	if after, relative := strings.CutPrefix(text, "+"); relative {
		s, err := Span(after)
		if err != nil {
			return 0, &Error{"time", text, "a span after the plus, such as +90s or +2h"}
		}
		return now.Add(s), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.Unix() >= 0 {
		return task.At(at), nil
	}
	at, err := task.ParseTime(text)
	if err != nil {
		return 0, &Error{"time", text, "Unix seconds, 2030-01-31T12:00:00Z, or +2h from now"}
	}
	return at, nil
}

// Span reads a span: seconds without a unit, units as in 2h30m, days as in 7d, or inf. A negative span is an error.
func Span(text string) (task.Seconds, error) {
	if s, err := task.ParseSeconds(text); err == nil {
		return s, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if s, err := task.ParseSeconds(days); err == nil {
			return 24 * 60 * 60 * s, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return task.For(d), nil
	}
	return 0, &Error{"span", text, "a span such as 90, 90s, 2h30m or 7d, or inf"}
}
