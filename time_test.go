package tdf

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimesAreExactToTheMicrosecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		std := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "µs"))
		at := At(std)
		back, err := ParseTime(at.String())
		if err != nil || back != at || !back.Std().Equal(std) {
			t.Fatalf("%v became %v, %v", std, back.Std(), err)
		}
	})
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
	if Never.String() != "inf" || Forever.String() != "inf" || !Never.Std().IsZero() || Forever.Std() != math.MaxInt64 {
		t.Error(Never, Forever, Never.Std(), Forever.Std())
	}
	if Time(5).Add(Forever) != Never || Time(7).Sub(5) != 2 || For(1500*time.Millisecond) != 1.5 || Seconds(0.25).Std() != 250*time.Millisecond {
		t.Error("the arithmetic of times or the conversion of durations is wrong")
	}
}
