// Package unixtime has the times and spans of time of TDF, as Redis stores them.
package unixtime

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Time is a time as Redis stores it: seconds since the Unix epoch, with up to six decimals. [Never] is later than all
// other times. All times that TDF measures are times of Redis's clock (docs/guarantees.md, "One clock"). Only times
// that a user chooses, such as a task's StartAfter, may come from another clock.
type Time float64

// Seconds is a span of time. [Forever] is an infinite span. Add spans that may be long as Seconds, and convert only the
// sum to a [time.Duration], because a sum of Durations overflows after 292 years.
type Seconds float64

// Latest is the largest finite Time and span. As a Time, it lies in the year 5138.
const Latest = 1e11

// Never is later than all other times. It is "inf" in Redis and in files.
var Never = Time(math.Inf(1))

// Forever is the infinite span. It is "inf" in Redis and in files.
var Forever = Seconds(math.Inf(1))

// Longest is the [time.Duration] that stands for [Forever].
const Longest = time.Duration(math.MaxInt64)

// At converts a [time.Time] to a Time. The zero time becomes 0, and times from the year 5138 on become Never.
func At(t time.Time) Time {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() >= Latest:
		return Never
	}
	return Time(float64(t.UnixMicro()) / 1e6)
}

// For converts a [time.Duration] to Seconds. Longest becomes Forever.
func For(d time.Duration) Seconds {
	if d == Longest {
		return Forever
	}
	return Seconds(d.Seconds())
}

// Add returns the time t + s.
func (t Time) Add(s Seconds) Time { return t + Time(s) }

// Sub returns the span t - u.
func (t Time) Sub(u Time) Seconds { return Seconds(t - u) }

// Std converts t to a [time.Time]. 0 becomes the zero time, and Never becomes a time in the year 5138.
func (t Time) Std() time.Time {
	switch {
	case t == 0:
		return time.Time{}
	case t >= Latest:
		return time.Unix(Latest, 0)
	}
	return time.UnixMicro(int64(math.Round(float64(t) * 1e6)))
}

// Std converts s to a [time.Duration], exact to the microsecond. If s is longer than Longest, Std returns Longest.
func (s Seconds) Std() time.Duration {
	if float64(s) >= math.MaxInt64/1e9 {
		return Longest
	}
	return time.Duration(math.Round(float64(s)*1e6)) * time.Microsecond
}

// String returns t as Redis stores it: a whole number of seconds, a number of seconds with six decimals, or "inf".
func (t Time) String() string { return Format(float64(t)) }

// String returns s as Redis stores it: a whole number of seconds, a number of seconds with six decimals, or "inf".
func (s Seconds) String() string { return Format(float64(s)) }

// Format returns a number of seconds as Redis stores it.
func Format(f float64) string {
	if math.IsInf(f, 1) {
		return "inf"
	}
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	if f < 0 { // only in errors
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

var errNotTime = errors.New("neither a number of seconds from 0 up nor inf")

// ParseTime parses a decimal number from 0 up, or "inf".
func ParseTime(s string) (Time, error) {
	f, err := parseSeconds(s)
	return Time(f), err
}

// ParseSeconds parses a decimal number from 0 up, or "inf".
func ParseSeconds(s string) (Seconds, error) {
	f, err := parseSeconds(s)
	return Seconds(f), err
}

func parseSeconds(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !Valid(f) || !IsDecimal(s) {
		return 0, errNotTime
	}
	return f, nil
}

// IsDecimal reports whether s is in decimal notation. It refuses hexadecimal numbers such as 0x1p4, which strconv
// accepts but the scripts in Redis do not. Without this check, each claim would postpone a task with a hexadecimal
// number, and the task would never run.
func IsDecimal(s string) bool {
	switch strings.ToLower(strings.TrimPrefix(s, "+")) {
	case "inf", "infinity":
		return true
	}
	return strings.Trim(s, "0123456789.eE+-") == ""
}

// Valid reports whether f is infinite, or from 0 to Latest.
func Valid(f float64) bool { return math.IsInf(f, 1) || f >= 0 && f <= Latest }
