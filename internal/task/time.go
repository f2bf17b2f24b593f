package task

import (
	"time"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// A Time is a time as Redis stores it: seconds since the Unix epoch, with up to six decimals. [Never] is later than all
// other times. All times that TDF measures are times of Redis's clock (docs/guarantees.md, "One clock"). Only times
// that a user chooses, such as a task's StartAfter, may come from another clock.
type Time = unixtime.Time

// Seconds is a span of time. [Forever] is an infinite span. Add spans that may be long as Seconds, and convert only the
// sum to a [time.Duration], because a sum of Durations overflows after 292 years.
type Seconds = unixtime.Seconds

// Never is later than all other times. It is "inf" in Redis and in files.
var Never = unixtime.Never

// Forever is the infinite span. It is "inf" in Redis and in files.
var Forever = unixtime.Forever

// Longest is the [time.Duration] that stands for [Forever].
const Longest = unixtime.Longest

// At converts a [time.Time] to a Time. The zero time becomes 0, and times from the year 5138 on become Never.
func At(t time.Time) Time { return unixtime.At(t) }

// For converts a [time.Duration] to Seconds. Longest becomes Forever.
func For(d time.Duration) Seconds { return unixtime.For(d) }

// ParseTime parses a decimal number from 0 up, or "inf".
func ParseTime(s string) (Time, error) { return unixtime.ParseTime(s) }

// ParseSeconds parses a decimal number from 0 up, or "inf".
func ParseSeconds(s string) (Seconds, error) { return unixtime.ParseSeconds(s) }

// leastSeconds is the smallest number of seconds above 0 that TDF can write to Redis. A smaller number may become 0.
const leastSeconds = Seconds(1e-6)
