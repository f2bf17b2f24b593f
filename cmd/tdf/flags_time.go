package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
)

// parseTime reads a flag's time: Unix seconds, RFC 3339, inf, or a span from now such as +2h.
func parseTime(flag, text string, now tdf.Time) (tdf.Time, error) {
	if span, relative := strings.CutPrefix(text, "+"); relative {
		s, err := parseSpan(span)
		if err != nil {
			return 0, usage("invalid value %q for --%s: want a span after the plus, such as +90s or +2h", text, flag)
		}
		return now.Add(s), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.Unix() >= 0 {
		return tdf.At(at), nil
	}
	at, err := tdf.ParseTime(text)
	if err != nil {
		return 0, usage("invalid value %q for --%s: want Unix seconds, 2030-01-31T12:00:00Z, or +2h from now", text, flag)
	}
	return at, nil
}

// checkEnd returns an error for an end_before in the past, because the task would expire at once. The error contains
// the name of the flag or of the configuration key that sets end_before.
func checkEnd(name string, at, now tdf.Time) error {
	if at > now {
		return nil
	}
	return usage("invalid %s: in the past, because Redis's clock shows %v; the task would expire at once", name, now)
}

// parseSpanFlag reads the value of a flag that is a span. The rules for properties check its range.
func parseSpanFlag(flag, text string) (tdf.Seconds, error) {
	s, err := parseSpan(text)
	if err != nil {
		return 0, usage("invalid value %q for --%s: want a span such as 90, 90s, 2h30m or 7d, or inf", text, flag)
	}
	return s, nil
}

// parseSpan reads a span: seconds without a unit, units as in 2h30m, days as in 7d, or inf. Negative spans are errors.
func parseSpan(text string) (tdf.Seconds, error) {
	s, err := tdf.ParseSeconds(text)
	if err == nil {
		return s, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		s, err := tdf.ParseSeconds(days)
		return 24 * 60 * 60 * s, err
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = strconv.ErrRange
	}
	return tdf.For(d), err
}
