// Package stdtime converts between the times of package tdf, as they stand in Redis, and the times of package time.
package stdtime

import (
	"math"
	"time"

	"github.com/tdf-framework/tdf"
)

// farthest is the latest time that a tdf.Time can hold, in seconds (the year 5138). Any later time is tdf.Never.
const farthest = 1e11

// Never is the time.Time that stands for tdf.Never.
func Never() time.Time { return time.Unix(farthest, 0) }

// Forever is the time.Duration that stands for tdf.Forever.
const Forever = time.Duration(math.MaxInt64)

// Time converts a moment; 0 becomes the zero time.
func Time(t tdf.Time) time.Time {
	switch {
	case t == 0:
		return time.Time{}
	case t >= farthest:
		return Never()
	}
	return t.Std()
}

// TDF converts a time back; the zero time becomes 0.
func TDF(t time.Time) tdf.Time {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() >= farthest:
		return tdf.Never
	}
	return tdf.At(t)
}

// Duration converts a span, to the microsecond.
func Duration(s tdf.Seconds) time.Duration {
	if float64(s) >= math.MaxInt64/1e9 {
		return Forever
	}
	return time.Duration(math.Round(float64(s)*1e6)) * time.Microsecond
}

// Seconds converts a span back.
func Seconds(d time.Duration) tdf.Seconds {
	if d == Forever {
		return tdf.Forever
	}
	return tdf.For(d)
}
