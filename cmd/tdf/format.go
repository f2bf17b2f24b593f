package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tdf-framework/tdf/manager"
)

// number formats a number for a table.
func number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// counted formats a number with its noun: "1 task", "2 tasks".
func counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return number(n) + " " + noun
}

// span formats a duration for people, rounded to one unit: 98s, 3m, 5h, 4d.
func span(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 0:
		return "0s"
	case s < 100:
		return fmt.Sprintf("%.0fs", s)
	case s < 100*60:
		return fmt.Sprintf("%.0fm", s/60)
	case s < 72*3600:
		return fmt.Sprintf("%.0fh", s/3600)
	default:
		return fmt.Sprintf("%.0fd", s/86400)
	}
}

// seconds formats a run time in seconds, with two decimals below 10 s. It returns "" for 0.
func seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s <= 0:
		return ""
	case s < 10:
		return strconv.FormatFloat(s, 'f', 2, 64)
	default:
		return strconv.FormatFloat(s, 'f', 0, 64)
	}
}

// perSecond formats a rate with three digits.
func perSecond(rate float64) string { return fmt.Sprintf("%.3g", rate) }

// size formats a number of bytes for people: "196 bytes", "1.23 kB".
func size(bytes int64) string {
	const units = "kMGTPE"
	if bytes < 1000 {
		return counted(bytes, "byte")
	}
	f, unit := float64(bytes), -1
	for f >= 999.5 {
		f /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %cB", f, units[unit])
}

// clock formats a time in the local time zone. It returns "" for the zero time and "never" for [manager.NoEnd].
func clock(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Equal(manager.NoEnd()):
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// stamp formats a time for CSV: RFC 3339 in UTC, to the microsecond. It returns "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// shellWord quotes s, if necessary, so that a shell reads it as one word.
func shellWord(s string) string {
	special := func(r rune) bool {
		return !strings.ContainsRune("_-+=./:@%,", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
