package stdtime

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
)

// If a value is converted and converted back, the result is the same value, to the microsecond.
func TestRoundTrips(t *testing.T) {
	for _, at := range []tdf.Time{0, 1, 0.5, 1_800_000_000.123456, 9e9, tdf.Never} {
		if got := TDF(Time(at)); got != at {
			t.Errorf("%v becomes %v", at, got)
		}
	}
	for _, s := range []tdf.Seconds{0, 0.29, 0.000001, 1.6, 1e9, tdf.Forever} {
		if got := Seconds(Duration(s)); got != s {
			t.Errorf("%v becomes %v", s, got)
		}
	}
	if got := Duration(0.29).Seconds(); got != 0.29 {
		t.Errorf("0.29 s are %v s", got)
	}
	if !Time(0).IsZero() || !Time(tdf.Never).Equal(Never()) || Never().Year() != 5138 || TDF(time.Time{}) != 0 {
		t.Error("0 or Never is converted to a wrong time")
	}
}
