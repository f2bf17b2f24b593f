package task

import (
	"math"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestLimitText(t *testing.T) {
	for want, l := range map[string]Limit{
		"at_most=4":                     {AtMost: 4},
		"rate=10/1":                     {Starts: 10, Per: Seconds(1).Std()},
		"at_most=3 rate=10000/0.001000": {AtMost: 3, Starts: 10_000, Per: Seconds(0.001).Std()},
	} {
		expect.Equal(t, l.String(), want)
	}
	for l, want := range map[Limit]int{{AtMost: 1}: 0, {Starts: 1, Per: Seconds(0.001).Std()}: 61, {Starts: 1, Per: Seconds(60).Std()}: 120} {
		expect.Equal(t, l.KeepStarts(), want, "the starts of", l, "stay for … s")
	}
}

func TestLimitCheck(t *testing.T) {
	for _, l := range []Limit{
		{AtMost: -1},
		{AtMost: MaxAtMost + 1},
		{Starts: -1, Per: 1},
		{Starts: 1},
		{Starts: 1, Per: Seconds(math.NaN()).Std()},
		{Starts: 1, Per: Longest},
		{Starts: 1, Per: Seconds(-1).Std()},
		{Starts: MaxStarts + 1, Per: Seconds(1).Std()},
	} {
		expect.Fails(t, l.Check(), "", "was accepted")
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Limit{
		"10/1s": {Starts: 10, Per: Seconds(1).Std()}, "10/s": {Starts: 10, Per: Seconds(1).Std()}, "600/m": {Starts: 600, Per: Seconds(60).Std()}, "5/1.5s": {Starts: 5, Per: Seconds(1.5).Std()},
		"1/2h": {Starts: 1, Per: Seconds(7200).Std()}, "1/d": {Starts: 1, Per: Seconds(86400).Std()}, "3/20": {Starts: 3, Per: Seconds(20).Std()}, "1/0.0015s": {Starts: 1, Per: Seconds(0.0015).Std()},
	} {
		if n, per, err := ParseRate(text); n != want.Starts || per != want.Per || err != nil {
			t.Errorf("%q: %d, %v, %v", text, n, per, err)
		}
	}
	for _, text := range []string{
		"", "10", "/", "10/", "/s", "10/x", "0/s", "-1/s", "1.5/s", "10/-1s", "10/infs", "10/NaN", "10/0s", "10001/s", "1/1000d", "1 /s", "1/ 1s", "1/s/s",
	} {
		if n, per, err := ParseRate(text); err == nil {
			t.Errorf("%q was read as %d starts in %v s", text, n, per)
		}
	}
}

func TestReadLimit(t *testing.T) {
	for texts, want := range map[[2]string]Limit{
		{"4", ""}: {AtMost: 4}, {"0", ""}: {}, {"", "10/1s"}: {Starts: 10, Per: Seconds(1).Std()}, {"4", "600/m"}: {AtMost: 4, Starts: 600, Per: Seconds(60).Std()},
	} {
		got := expect.Result(ReadLimit(texts[0], texts[1])).Value(t)
		expect.Equal(t, got, want)
		expect.Equal(t, got.StopsAll(), texts[0] == "0")
	}
	for texts, want := range map[[2]string]string{
		{"", ""}: "at least one of them", {"0", "10/1s"}: "leave out one of them", {"x", ""}: `"x"`, {"-1", ""}: "invalid limit -1", {"4", "x"}: `"x"`,
	} {
		_, err := ReadLimit(texts[0], texts[1])
		expect.Fails(t, err, want)
	}
}

// A limit in Redis is read as it was written. What is no limit lets no task start, as in claims.
func TestParseLimit(t *testing.T) {
	for _, l := range []Limit{{AtMost: 4}, {}, {Starts: 10, Per: Seconds(1.5).Std()}, {AtMost: 4, Starts: 10, Per: Seconds(60).Std()}} {
		got, ok := ParseLimit(l.String())
		expect.True(t, ok, l)
		expect.Equal(t, got, l)
	}
	for _, foreign := range []string{"odd", "at_most=x", "rate=x/1", "at_most=2 rate=1/", "at_most=1 rate=0/1"} {
		got, ok := ParseLimit(foreign)
		expect.True(t, ok, foreign)
		expect.True(t, got.StopsAll(), foreign)
	}
	_, ok := ParseLimit("")
	expect.True(t, !ok)
}
