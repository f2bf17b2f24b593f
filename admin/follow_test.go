package admin

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A tailReader reconstructs the whole text from overlapping tails. It returns each part once.
func TestOverlappingTails(t *testing.T) {
	const window = 40
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9 ]{1,12}`), 1, 30).Draw(t, "lines")
		var all, got strings.Builder
		var r tailReader
		for i, line := range lines {
			all.WriteString(strings.Repeat(string(rune('A'+i%26)), 1+i/26) + line + "\n") // no two lines are alike
			if rapid.Bool().Draw(t, "look") || all.Len()-got.Len() > window/2 {
				text := all.String()
				added, skipped := r.next(text[max(0, len(text)-window):])
				if skipped {
					t.Errorf("a gap between %q and %q", got.String(), added)
				}
				got.WriteString(added)
			}
		}
		at := r.end(all.String())
		if at < 0 {
			t.Fatalf("no position after the tail %q", r.last)
		}
		if got.WriteString(all.String()[at:]); got.String() != all.String() {
			t.Errorf("got %q, want %q", got.String(), all.String())
		}
	})
}

func TestTails(t *testing.T) {
	var r tailReader
	for i, c := range []struct {
		tail, want string
		skipped    bool
	}{
		{"", "", false},
		{"a\n", "a\n", false},
		{"a\n", "", false},
		{"a\nb\n", "b\n", false},
		{"", "", false}, // the tail is removed at the end of the round
		{"b\nc\n", "c\n", false},
		{"x\ny\n", "x\ny\n", true},
	} {
		if added, skipped := r.next(c.tail); added != c.want || skipped != c.skipped {
			t.Errorf("%d: added %q, skipped %v; want %q, %v", i, added, skipped, c.want, c.skipped)
		}
	}
	for text, want := range map[string]int{"x\ny\n": 4, "stdout x\ny\nrest": 11, "other": -1, "": -1} {
		expect.Equal(t, r.end(text), want, text, "continues at")
	}
	expect.Equal(t, (&tailReader{}).end("all"), 0, "a text without tails continues at")
}

// Repeated lines are neither lost nor printed twice.
func TestTailsOfRepeatedLines(t *testing.T) {
	const line = "tick\n"
	var r tailReader
	for n := 1; n <= 22; n++ {
		r.next(strings.Repeat(line, n))
	}
	expect.Equal(t, r.end(strings.Repeat(line, 32)), 22*len(line), "continues at")
	late := tailReader{}
	late.next(strings.Repeat(line, 100)) // the beginning of this text is unknown
	expect.Equal(t, late.end("first\n"+strings.Repeat(line, 200)), -1, "continues at")
}
