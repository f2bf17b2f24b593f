package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
)

// parseTime reads the moment that a flag names: unix seconds, RFC 3339, inf, or a span from now such as +2h.
func parseTime(flag, text string, now tdf.Time) (tdf.Time, error) {
	if span, relative := strings.CutPrefix(text, "+"); relative {
		s, err := parseSpan(span)
		if err != nil {
			return 0, usage("--%s %q is no time from now, such as +90s or +2h", flag, text)
		}
		return now.Add(s), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.Unix() >= 0 {
		return tdf.At(at), nil
	}
	at, err := tdf.ParseTime(text)
	if err != nil {
		return 0, usage("--%s %q is no time: unix seconds, 2030-01-31T12:00:00Z, or +2h from now", flag, text)
	}
	return at, nil
}

// checkEnd refuses an end_before that would have tasks expire at once.
func checkEnd(what string, at, now tdf.Time) error {
	if at > now {
		return nil
	}
	return usage("%s is past by Redis's clock, where it is %v now: the task would expire at once", what, now)
}

// parseTimeout reads how long a round may run.
func parseTimeout(text string) (tdf.Seconds, error) {
	s, err := parseSpan(text)
	if err != nil || s <= 0 {
		return 0, usage("--timeout %q is no span above 0: seconds, 90s, 2h30m, or inf", text)
	}
	return s, nil
}

// parseSpan reads seconds from 0 up, inf, or a span with units.
func parseSpan(text string) (tdf.Seconds, error) {
	s, err := tdf.ParseSeconds(text)
	if err == nil {
		return s, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = strconv.ErrRange
	}
	return tdf.For(d), err
}
