// Package stdtime converts times of package tdf, which are the times in Redis, to times of package time, and back.
package stdtime

import (
	"math"
	"time"

	"github.com/tdf-framework/tdf"
)

// farthest is the latest time that a tdf.Time can hold, in seconds (the year 5138). Any later time is tdf.Never.
const farthest = 1e11

// Never returns the time.Time that corresponds to tdf.Never.
func Never() time.Time { return time.Unix(farthest, 0) }

// Forever is the time.Duration that corresponds to tdf.Forever.
const Forever = time.Duration(math.MaxInt64)

// Time converts a tdf.Time. 0 becomes the zero time.
func Time(t tdf.Time) time.Time {
	switch {
	case t == 0:
		return time.Time{}
	case t >= farthest:
		return Never()
	}
	return t.Std()
}

// TDF converts a time.Time into a tdf.Time. The zero time becomes 0.
func TDF(t time.Time) tdf.Time {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() >= farthest:
		return tdf.Never
	}
	return tdf.At(t)
}

// Duration converts a number of seconds. The result is exact to the microsecond.
func Duration(s tdf.Seconds) time.Duration {
	if float64(s) >= math.MaxInt64/1e9 {
		return Forever
	}
	return time.Duration(math.Round(float64(s)*1e6)) * time.Microsecond
}

// Seconds converts a time.Duration into a number of seconds.
func Seconds(d time.Duration) tdf.Seconds {
	if d == Forever {
		return tdf.Forever
	}
	return tdf.For(d)
}
