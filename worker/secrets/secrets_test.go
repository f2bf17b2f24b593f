package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

func of(values ...string) *Secrets {
	var env []string
	for i, value := range values {
		env = append(env, fmt.Sprintf("S%d=%s", i, value))
	}
	return newSecrets(env)
}

func TestMask(t *testing.T) {
	long := strings.Repeat("<", mostEscaped+1)
	for name, c := range map[string]struct {
		secrets    *Secrets
		text, want string
	}{
		"none":              {nil, "hunter22", "hunter22"},
		"empty file":        {of(), "hunter22", "hunter22"},
		"all of it":         {of("hunter22"), "hunter22", "***"},
		"within":            {of("hunter22"), "a hunter22, hunter22\n", "a ***, ***\n"},
		"side by side":      {of("hunter22"), "hunter22hunter22", "******"},
		"nearly":            {of("hunter22"), "hunter2 Hunter22", "hunter2 Hunter22"},
		"too short":         {of("abc"), "abc", "abc"},
		"of four bytes":     {of("abcd"), "abc abcd", "abc ***"},
		"longest first":     {of("pass", "password"), "password pass", "*** ***"},
		"overlapping":       {of("abcdef", "defghi"), "abcdefghi", "***"},
		"of itself":         {of("aaaa"), "xaaaaaay", "x***y"},
		"one in another":    {of("abcdefgh", "cdef"), "abcdefgh cdef", "*** ***"},
		"bytes":             {of("\xff\xfe\xfd\xfc"), "\x00\xff\xfe\xfd\xfc\n", "\x00***\n"},
		"in JSON":           {of(`a"b\c`), `{"x":"a\"b\\c"}`, `{"x":"***"}`},
		"escaped by Go":     {of("ab&cd<é/𝒜x"), `ab\u0026cd\u003cé/𝒜x`, "***"},
		"escaped by Python": {of("ab&cd<é/𝒜x"), `ab&cd<\u00e9/\ud835\udc9cx`, "***"},
		"escaped by PHP":    {of("ab&cd<é/𝒜x"), `ab&cd<\u00e9\/\ud835\udc9cx`, "***"},
		"escaped by .NET":   {of("ab&cd<é/𝒜x"), `1 ab\u0026cd\u003C\u00E9/\uD835\uDC9Cx 2`, "1 *** 2"},
		"begins escaped":    {of("<abc"), `x\u003cabc\u003cab`, `x***\u003cab`},
		"other escapes":     {of("ab&cd"), `ab\u0027cd ab\u00cd ab\u002`, `ab\u0027cd ab\u00cd ab\u002`},
		"half a character":  {of("ab𝒜cd"), `ab\ud835cd ab\ud835\u0041cd`, `ab\ud835cd ab\ud835\u0041cd`},
		"too long":          {of(long), `x` + long + `y\u003c\u00e9`, `x***y\u003c\u00e9`},
		"a tab":             {of("ab\tcd"), `ab\tcd ab\u0009cd`, "*** ***"},
		"in quotes":         {of(`"abc"`), `{"x":"\"abc\""} "abc"`, `{"x":"***"} ***`},
		"lines of a key":    {of(`-----BEGIN\nabcdef\nxy\n`), "-----BEGIN\nabcdef\nxy\n", "***\n***\nxy\n"},
		"a value with CR":   {of("abcd\refgh"), "efgh", "***"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, c.secrets.Mask(c.text), c.want)
		})
	}
}

func TestMaskPart(t *testing.T) {
	s := of("secret")
	text := "ab secret cd" // the secret is text[3:9]
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{0, 12, "ab *** cd"},
		{0, 4, "ab *"},
		{0, 3, "ab "},
		{0, 5, "ab **"},
		{0, 8, "ab ***"},
		{8, 12, "* cd"},
		{4, 8, "***"},
		{9, 12, " cd"},
		{5, 5, ""},
	} {
		expect.Equal(t, string(s.MaskPart([]byte(text), c.from, c.to)), c.want, c.from, "to", c.to)
		none := (*Secrets)(nil)
		expect.Equal(t, string(none.MaskPart([]byte(text), c.from, c.to)), text[c.from:c.to], c.from, "to", c.to, "with no secrets")
	}
}

// Wherever a text is cut, its masked parts together show no more than the whole masked text. No masked part is longer
// than the part was before.
func TestMaskPartShowsNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab]{4,9}`)
		s := of(rapid.SliceOfN(word, 1, 3).Draw(t, "secrets")...)
		text := rapid.StringMatching(`[abc]{0,40}`).Draw(t, "text")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		var got string
		for _, part := range [][2]int{{0, cut}, {cut, len(text)}} {
			low := max(0, part[0]-s.Longest()+1)
			high := min(len(text), part[1]+s.Longest()-1)
			masked := s.MaskPart([]byte(text[low:high]), part[0]-low, part[1]-low)
			if len(masked) > part[1]-part[0] {
				t.Fatalf("%q is longer than what it masks", masked)
			}
			got += string(masked)
		}
		plain := func(s string) string { return strings.ReplaceAll(s, "*", "") }
		if whole := s.Mask(text); plain(got) != plain(whole) {
			t.Fatalf("in parts %q, whole %q", got, whole)
		}
	})
}

func TestPartial(t *testing.T) {
	s := of("secret", "etcetera")
	for text, want := range map[string]int{
		"": 0, "abc": 0, "s": 1, "a sec": 3, "secre": 5, "secret": 2, "secret ": 0, "etceter": 7, "xetcetera": 0, "ss": 1,
	} {
		expect.Equal(t, s.Partial([]byte(text)), want, text)
	}
	expect.Equal(t, (*Secrets)(nil).Partial([]byte("s")), 0, "nil")
	s = of("<é𝒜z")
	for _, escaped := range []string{`<é𝒜z`, `\u003c\u00e9\ud835\udc9cz`, `\u003Cé\uD835\uDC9Cz`} {
		for n := range len(escaped) {
			if utf8.RuneStart(escaped[n]) {
				expect.Equal(t, s.Partial([]byte("x"+escaped[:n])), n, escaped[:n])
			}
		}
		expect.Equal(t, s.Partial([]byte(escaped)), 0, escaped)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	s := of("hunter22")
	data := expect.Result(json.Marshal(map[string]any{"s": s})).Value(t)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v %+v %#v %s %q %d %v %s", s, s, s, s, s, s, struct{ S *Secrets }{s}, data)
	expect.True(t, !strings.Contains(b.String(), "hunter22"), b.String())
}

func TestNoSecrets(t *testing.T) {
	var s *Secrets
	expect.Equal(t, s.Env(), nil)
	expect.Equal(t, s.Longest(), 0)
	expect.Equal(t, testing.AllocsPerRun(10, func() { s.Mask("a text") }), 0, "allocations")
}
