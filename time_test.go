package tdf

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimesAreExactToTheMicrosecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		std := time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(t, "µs"))
		at := At(std)
		back, err := ParseTime(at.String())
		if err != nil || back != at || !back.Std().Equal(std) {
			t.Fatalf("%v became %v, %v", std, back.Std(), err)
		}
	})
}

// If a time or span is converted and converted back, the result is the same value, to the microsecond.
func TestConversionsToStandardTimes(t *testing.T) {
	for _, at := range []Time{0, 1, 0.5, 1_800_000_000.123456, 9e9, Never} {
		if got := At(at.Std()); got != at {
			t.Errorf("%v becomes %v", at, got)
		}
	}
	for _, s := range []Seconds{0, 0.29, 0.000001, 1.6, 1e9, Forever} {
		if got := For(s.Std()); got != s {
			t.Errorf("%v becomes %v", s, got)
		}
	}
	if got := Seconds(0.29).Std().Seconds(); got != 0.29 {
		t.Errorf("0.29 s are %v s", got)
	}
	if !Time(0).Std().IsZero() || At(time.Time{}) != 0 {
		t.Error("0 or the zero time is converted to a wrong time")
	}
}

func TestParseSeconds(t *testing.T) {
	for text, want := range map[string]Seconds{"0": 0, "1.5": 1.5, "inf": Forever, "+Inf": Forever, "1e3": 1000} {
		if got, err := ParseSeconds(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "nan", "-inf", "soon", "1e300", "0x", "1s"} {
		if got, err := ParseSeconds(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestNeverAndForever(t *testing.T) {
	if Never.String() != "inf" || Forever.String() != "inf" || Never.Std().Year() != 5138 || Forever.Std() != Longest {
		t.Error(Never, Forever, Never.Std(), Forever.Std())
	}
	if Time(5).Add(Forever) != Never || Time(7).Sub(5) != 2 || For(1500*time.Millisecond) != 1.5 || Seconds(0.25).Std() != 250*time.Millisecond {
		t.Error("the arithmetic of times or the conversion of durations is wrong")
	}
}
