package main

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whoever looks at the end of a text often enough sees all of it, once.
func TestTailingMissesNothing(t *testing.T) {
	const window = 40
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9 ]{1,12}`), 1, 30).Draw(t, "lines")
		var all, got strings.Builder
		var f tailing
		for i, line := range lines {
			all.WriteString(strings.Repeat(string(rune('A'+i%26)), 1+i/26) + line + "\n") // no two lines are alike
			if rapid.Bool().Draw(t, "look") || all.Len()-got.Len() > window/2 {
				text := all.String()
				news, skipped := f.news(text[max(0, len(text)-window):])
				if skipped {
					t.Errorf("something was missed after %q: %q", got.String(), news)
				}
				got.WriteString(news)
			}
		}
		at := f.end(all.String())
		if at < 0 {
			t.Fatalf("the end of %q was not found in it", f.seen)
		}
		if got.WriteString(all.String()[at:]); got.String() != all.String() {
			t.Errorf("got %q, want %q", got.String(), all.String())
		}
	})
}

func TestTailing(t *testing.T) {
	var f tailing
	for i, c := range []struct {
		tail, want string
		skipped    bool
	}{
		{"", "", false},
		{"a\n", "a\n", false},
		{"a\n", "", false},
		{"a\nb\n", "b\n", false},
		{"", "", false}, // it has gone, as at the end
		{"b\nc\n", "c\n", false},
		{"x\ny\n", "x\ny\n", true},
	} {
		if news, skipped := f.news(c.tail); news != c.want || skipped != c.skipped {
			t.Errorf("%d: %q is new, missed %v; want %q, %v", i, news, skipped, c.want, c.skipped)
		}
	}
	for text, want := range map[string]int{"x\ny\n": 4, "stdout x\ny\nrest": 11, "other": -1, "": -1} {
		if got := f.end(text); got != want {
			t.Errorf("%q goes on at %d, want %d", text, got, want)
		}
	}
	if got := (&tailing{}).end("all"); got != 0 {
		t.Errorf("what nothing was seen of goes on at %d", got)
	}
}

// A program that prints the same line again and again loses none of them at its end.
func TestTailingOfRepeatedLines(t *testing.T) {
	const line = "tick\n"
	var f tailing
	for n := 1; n <= 22; n++ {
		f.news(strings.Repeat(line, n))
	}
	if got := f.end(strings.Repeat(line, 32)); got != 22*len(line) {
		t.Errorf("it goes on at %d", got)
	}
	late := tailing{}
	late.news(strings.Repeat(line, 100)) // stderr was shown, too, or the beginning was missed
	if got := late.end("first\n" + strings.Repeat(line, 200)); got != -1 {
		t.Errorf("it goes on at %d, and that cannot be known", got)
	}
}
