package task

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
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
		expect.Equal(t, At(at.Std()), at, "becomes")
	}
	for _, s := range []Seconds{0, 0.29, 0.000001, 1.6, 1e9, Forever} {
		expect.Equal(t, For(s.Std()), s, "becomes")
	}
	expect.Equal(t, Seconds(0.29).Std().Seconds(), 0.29, "0.29 s … s")
	expect.True(t, Time(0).Std().IsZero(), "0 or the zero time is converted to a wrong time")
	expect.Equal(t, At(time.Time{}), 0, "0 or the zero time is converted to a wrong time")
}

func TestParseSeconds(t *testing.T) {
	for text, want := range map[string]Seconds{"0": 0, "1.5": 1.5, "inf": Forever, "+Inf": Forever, "1e3": 1000} {
		expect.Result(ParseSeconds(text)).Is(t, want, text)
	}
	for _, text := range []string{"", "-1", "nan", "-inf", "soon", "1e300", "0x", "1s"} {
		expect.Result(ParseSeconds(text)).Fails(t, "", text)
	}
}

func TestNeverAndForever(t *testing.T) {
	expect.Equal(t, Never.String(), "inf")
	expect.Equal(t, Forever.String(), "inf")
	expect.Equal(t, For(-1).String(), "-0.000000001") // an error must show that it is negative
	expect.Equal(t, Never.Std().Year(), 5138)
	expect.Equal(t, Forever.Std(), Longest)
	expect.Equal(t, Time(5).Add(Forever), Never, "the arithmetic of times or the conversion of durations is wrong")
	expect.Equal(t, Time(7).Sub(5), 2, "the arithmetic of times or the conversion of durations is wrong")
	expect.Equal(t, For(1500*time.Millisecond), 1.5, "the arithmetic of times or the conversion of durations is wrong")
	expect.Equal(t, Seconds(0.25).Std(), 250*time.Millisecond, "the arithmetic of times or the conversion of durations is wrong")
}
