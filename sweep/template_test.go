package sweep

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestTemplate(t *testing.T) {
	row := rowOf("a", "1.5", "b", "it's \"so\" $x\\", "empty", "", "some words", "p  q 'r s'", "nl", "x\ny")
	for template, want := range map[string]string{
		"--rate {a} --mode {b}":   `--rate 1.5 --mode 'it'\''s "so" $x\'`,
		"{a}{a} --x={b}":          `1.51.5 --x='it'\''s "so" $x\'`,
		"{empty} x{empty}":        `'' x''`,
		`"<{b}>"`:                 `"<it's \"so\" \$x\\>"`,
		`'<{b}>'`:                 `'<it'\''s "so" $x\>'`,
		"{some words|raw} {a}":    `p  q 'r s' 1.5`,
		"{ a } {{a}} {{{a}}}":     `1.5 {a} {1.5}`,
		`\\{a} "\\{a}" '\{a}'`:    `\\1.5 "\\1.5" '\1.5'`,
		`\{{{a} "\{{"`:            `\{1.5 "\{"`,
		"{nl} '{nl}' \"{nl}\"":    "'x\ny' 'x\ny' \"x\ny\"",
		"a\\\n{a}":                "a\\\n1.5",
		`{"a"}`:                   "",
		"no parameters":           "no parameters",
		"":                        "",
		`{{"rate": {a}}}`:         `{"rate": 1.5}`,
		`'{{"mode": "{a}"}}' end`: `'{"mode": "1.5"}' end`,
	} {
		tm, err := ParseTemplate(template)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		got, err := tm.Fill(&row)
		if want == "" && template != "" {
			checkError(t, template, err, `no parameter "a"; the parameters are a, b, empty, some words, nl`)
			continue
		}
		expect.NoError(t, err, template)
		expect.Equal(t, got, want, template)
	}
}

func TestTemplateRefuses(t *testing.T) {
	for template, want := range map[string]string{
		"{a":            "a { is not closed",
		"x { y {a}":     "a { is not closed",
		`{"rate": {a}}`: "a { is not closed",
		"a}":            "a } closes nothing",
		`\}`:            "a } closes nothing",
		"{}":            "{} names no parameter",
		"{ |raw}":       "{} names no parameter",
		`\{a}`:          "a backslash right before a parameter",
		`"\{a}"`:        "a backslash right before a parameter",
		"'{a}":          "a quote is not closed",
		`{a} \`:         "backslash",
		"{a}\n{b}":      "a line break outside quotes",
	} {
		_, err := ParseTemplate(template)
		checkError(t, template, err, want, "parse template ")
	}
}

func TestFillRefuses(t *testing.T) {
	tm := expect.Result(ParseTemplate("{a}")).Value(t)
	for _, c := range []struct {
		row  Row
		want string
	}{
		{rowOf("b", "1", "c", "2"), "no parameter a; the parameters are b, c"},
		{rowOf("a", "x\x00y"), "a contains a NUL byte"},
		{rowOf("a", strings.Repeat("x", task.MaxInput+1)), "the input has more than 131071 bytes"},
	} {
		_, err := tm.Fill(&c.row)
		checkError(t, "filling", err, c.want)
		if c.row.Params[0].Name == "a" {
			_, err = c.row.Words()
			checkError(t, "words", err, c.want)
		}
	}
}

// A small template and a small row do not make a large text, and a grid with many values costs no search through them.
func TestSmallTextsThatGrow(t *testing.T) {
	places := expect.Result(ParseTemplate(strings.Repeat("{a}", task.MaxInput/3))).Value(t)
	row := rowOf("a", strings.Repeat("x", 4000))
	expect.Compare(t, bytesOf(func() { expect.Result(places.Fill(&row)).Fails(t, "more than") }), "<", 2<<20, "bytes of memory for a template")
	expect.Result(ParseTemplate(strings.Repeat("{a}", task.MaxInput))).Fails(t, "want at most")
	g := expect.Result(ParseGrid("a=" + strings.Repeat("1..2,", 1000) + "x b=1..2")).Value(t)
	expect.Equal(t, g.row(2 * 2000).Params[0].Text, "x")
	expect.Equal(t, g.row(2 * 1999).Params[0].Text, "2")
	expect.Equal(t, g.row(2 * 1998).Params[0].Text, "1")
}

// bytesOf returns how many bytes a function allocates.
func bytesOf(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(anyText(), 1, 5).Draw(t, "values")
		var row Row
		for _, v := range values {
			row.Params = append(row.Params, Param{Name: "p", Text: v})
		}
		input, err := row.Words()
		if err != nil {
			t.Fatal(err)
		}
		if words, err := task.SplitInput(input); err != nil || !slices.Equal(words, values) {
			t.Fatalf("%s is split into %q, %v, want %q", input, words, err, values)
		}
	})
}

// A templateWord is a word of a template, together with the word that Fill must make from it.
type templateWord struct{ written, filled string }

func drawWord(t *rapid.T, row *Row) templateWord {
	var w templateWord
	for range rapid.IntRange(1, 3).Draw(t, "pieces") {
		text := rapid.StringOf(rapid.SampledFrom([]rune("xy {}$#"))).Draw(t, "text")
		p := rapid.SampledFrom(row.Params).Draw(t, "parameter")
		escaped := strings.NewReplacer("{", "{{", "}", "}}").Replace(text)
		place := "{" + p.Name + "}"
		switch rapid.IntRange(0, 2).Draw(t, "quotes") {
		case 0:
			w.written += strings.ReplaceAll(escaped, " ", `\ `) + place
		case 1:
			w.written += "'" + escaped + place + "'"
		case 2:
			w.written += `"` + strings.ReplaceAll(escaped, "$", `\$`) + place + `"`
		}
		w.filled += text + p.Text
	}
	return w
}

// For any values, the input has as many words as the template, and each word contains the values of its parameters.
func TestFillProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rowOf("a", anyText().Draw(t, "a"), "b", anyText().Draw(t, "b"))
		var written, want []string
		for range rapid.IntRange(1, 4).Draw(t, "words") {
			w := drawWord(t, &row)
			written, want = append(written, w.written), append(want, w.filled)
		}
		template := strings.Join(written, " ")
		tm, err := ParseTemplate(template)
		if err != nil {
			t.Fatal(err)
		}
		input, err := tm.Fill(&row)
		if err != nil {
			t.Fatal(err)
		}
		got, err := task.SplitInput(input)
		if err != nil {
			t.Fatalf("%s → %s: %v", template, input, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s → %s\n%s", template, input, diff)
		}
	})
}

// The number of words in the input does not depend on the values.
func FuzzTemplate(f *testing.F) {
	f.Add("--rate {a} --mode '{b}'", "x y", `it's "`)
	f.Add(`"\\{a}" {{\{{ {b}`, "$", "\\")
	f.Add("{a|raw}", "'", "")
	f.Add("x\\\n{a}\t''", "", "\n")
	f.Fuzz(func(t *testing.T, template, a, b string) {
		tm, err := ParseTemplate(template)
		if err != nil || strings.Contains(template, rawSuffix) {
			return
		}
		words := func(a, b string) []string {
			row := rowOf("a", a, "b", b)
			input, err := tm.Fill(&row)
			if err != nil {
				return nil // a parameter is missing or contains a NUL byte, or the input is too long
			}
			words, err := task.SplitInput(input)
			expect.NoError(t, err, template, "→", input)
			return words
		}
		plain, got := words("1", "2"), words(a, b)
		if got != nil {
			expect.MustEqual(t, len(got), len(plain), template, a, "and", b)
		}
	})
}
