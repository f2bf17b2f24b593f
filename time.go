package tdf

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Time is a moment as it stands in Redis: seconds since the Unix epoch, with decimals.
// Zero is long past, [Never] lies after every moment. The only clock that counts is
// Redis's own (docs/guarantees.md); a Time taken on another machine is a user's wish,
// such as a task's StartAfter, and not a measurement.
type Time float64

// Seconds is a span of time. [Forever] does not end.
type Seconds float64

// The moment that does not come, and the span that does not end: "inf" in Redis and in files.
const (
	maxFinite = 1e11 // far enough (the year 5138) and still exact to the microsecond
)

// Never is the moment that does not come.
var Never = Time(math.Inf(1))

// Forever is the span that does not end.
var Forever = Seconds(math.Inf(1))

// At converts a time.Time.
func At(t time.Time) Time { return Time(float64(t.UnixMicro()) / 1e6) }

// For converts a time.Duration.
func For(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// Add returns the moment that lies s after t.
func (t Time) Add(s Seconds) Time { return t + Time(s) }

// Sub returns the span from u to t.
func (t Time) Sub(u Time) Seconds { return Seconds(t - u) }

// Std converts to a time.Time; Never becomes the zero time.
func (t Time) Std() time.Time {
	if t >= maxFinite {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(float64(t) * 1e6)))
}

// Std converts to a time.Duration, at most the longest one.
func (s Seconds) Std() time.Duration {
	if float64(s) >= math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(float64(s) * 1e9)
}

// String formats t as it is written to Redis: to the microsecond, or "inf".
func (t Time) String() string { return formatFloat(float64(t)) }

// String formats s as it is written to Redis.
func (s Seconds) String() string { return formatFloat(float64(s)) }

func formatFloat(f float64) string {
	if math.IsInf(f, 1) {
		return "inf"
	}
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

var errNotTime = errors.New("not a number of seconds from 0 up, or inf")

// ParseTime reads what String wrote, and any other decimal number from 0 up, or "inf".
func ParseTime(s string) (Time, error) {
	f, err := parseSeconds(s)
	return Time(f), err
}

// ParseSeconds reads a span: a decimal number from 0 up, or "inf".
func ParseSeconds(s string) (Seconds, error) {
	f, err := parseSeconds(s)
	return Seconds(f), err
}

func parseSeconds(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !validSeconds(f) || !isDecimal(s) {
		return 0, errNotTime
	}
	return f, nil
}

// plain keeps out spellings that strconv reads and a script in Redis does not, such as 0x1p4: a claim
// would put such a task off for ever.
func isDecimal(s string) bool {
	switch strings.ToLower(strings.TrimPrefix(s, "+")) {
	case "inf", "infinity":
		return true
	}
	return strings.Trim(s, "0123456789.eE+-") == ""
}

// validSeconds also keeps out what a float64 cannot hold to the microsecond.
func validSeconds(f float64) bool { return math.IsInf(f, 1) || f >= 0 && f <= maxFinite }
