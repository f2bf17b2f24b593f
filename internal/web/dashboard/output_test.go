package dashboard

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// An output on a page has its colours, hides nothing, and is no HTML.
func TestOutput(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"a\tb\n":                            "a\tb\n",
		"a\r\nb\n":                          "a\nb\n",
		"\r10 %\r20 %\r\n":                  "\n10 %\n20 %\n",
		"<b>&\"'":                           "&lt;b&gt;&amp;&#34;&#39;",
		"\x1b[31mred\x1b[0m.":               `<span class="f1">red</span>.`,
		"\x1b[1;92;44mx\n\x1b[my":           "<span class=\"b f10 g4\">x</span>\ny",
		"\x1b[31mred\nstill\x1b[39m no":     "<span class=\"f1\">red</span>\n<span class=\"f1\">still</span> no",
		"\x1b[38;5;3mx\x1b[38;5;200my":      `<span class="f3">x</span>y`,
		"\x1b[38;2;1;2;3;1mx":               `<span class="b">x</span>`,
		"\x1b[2Jx":                          `\x1b[2Jx`,
		"\x1b[99999999999999999999mx":       "x",
		"\x1b[31;\"><script>mx":             `\x1b[31;&#34;&gt;&lt;script&gt;mx`,
		"\x1b]0;title\a":                    `\x1b]0;title\a`,
		"\u202eRTL \u2066x\u200b":           `\u202eRTL \u2066x\u200b`,
		"\xff\xfe\x00":                      `\xff\xfe\x00`,
		"x\x1b[":                            `x\x1b[`,
		"\x1b[" + strings.Repeat("1;", 100): "",
	} {
		got := string(outputOf(text).HTML)
		if got != want {
			expect.Equal(t, want, "")
		}
		expect.True(t, !strings.ContainsAny(got, "\x1b\u202e\x00"), text, got)
	}
}

// A long line and a long output are cut, and say so.
func TestLongOutput(t *testing.T) {
	long := outputOf("begin " + strings.Repeat("ä", 5<<20) + "\nend\n")
	n := len(long.HTML)
	expect.Compare(t, n, "<=", longestOutput)
	expect.Compare(t, long.Cut, ">=", 9<<20, n)
	expect.Contains(t, string(long.HTML), "bytes more", n)
	expect.True(t, strings.HasSuffix(string(long.HTML), "end\n"), n, "bytes", long.Cut, "cut", long.HTML)
	lines := outputOf(strings.Repeat("\x1b[31mx\x1b[1my\n", 100_000))
	expect.Compare(t, len(lines.HTML), "<=", 20*longestOutput)
	expect.NotEqual(t, lines.Cut, 0)
}

func FuzzOutput(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m <b> \u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		got := string(outputOf(text).HTML)
		for _, part := range strings.Split(got, "<")[1:] {
			if !strings.HasPrefix(part, `span class="`) && !strings.HasPrefix(part, "/span>") && !strings.HasPrefix(part, `em class="faint">`) {
				expect.MustTrue(t, strings.HasPrefix(part, "/em>"), text, "became", got)
			}
		}
		expect.MustTrue(t, !strings.ContainsAny(got, "\x1b\x00\u202e\r"), text, "became", got)
	})
}
