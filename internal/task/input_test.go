package task

import (
	"cmp"
	"encoding/base64"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestSplitInput(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
		err  error
	}{
		{in: ""},
		{in: " \t "},
		{in: "1 2  3", want: []string{"1", "2", "3"}},
		{in: `'a b' "c d" e\ f`, want: []string{"a b", "c d", "e f"}},
		{in: `''`, want: []string{""}},
		{in: `a''b "" ''`, want: []string{"ab", "", ""}},
		{in: `$(rm -rf /) ; > * && | $HOME`, want: []string{"$(rm", "-rf", "/)", ";", ">", "*", "&&", "|", "$HOME"}},
		{in: `"\$ \" \\ \a"`, want: []string{`$ " \ \a`}},
		{in: `'\'`, want: []string{`\`}},
		{in: "'a\nb'", want: []string{"a\nb"}},
		{in: "\"a\nb\"", want: []string{"a\nb"}},
		{in: "a\\\nb", want: []string{"ab"}},
		{in: "a \\\n b", want: []string{"a", "b"}},
		{in: "\"a\\\nb\"", want: []string{"ab"}},
		{in: "# no comment", want: []string{"#", "no", "comment"}},
		{in: `'a`, err: errUnbalanced},
		{in: `"a`, err: errUnbalanced},
		{in: `"a\"`, err: errUnbalanced},
		{in: `a\`, err: errTrailing},
		{in: "a\nb", err: errNewline},
	} {
		got, err := SplitInput(c.in)
		expect.FailsWith(t, err, c.err, c.in)
		if c.err == nil {
			expect.Equal(t, got, c.want, c.in)
		}
	}
}

// SplitInput and a shell split an input into the same words if the shell has nothing to expand.
func TestSplitInputAsAShellDoes(t *testing.T) {
	sh := expect.Result(exec.LookPath("sh")).Value(t)
	word := rapid.StringOf(rapid.SampledFrom([]rune("ab \t'\"\\")))
	rapid.Check(t, func(rt *rapid.T) {
		input := word.Draw(rt, "input")
		got, err := SplitInput(input)
		if err != nil || strings.HasSuffix(input, "\\") {
			return
		}
		out, err := exec.Command(sh, "-c", `printf '%s\0' x `+input).Output()
		if err != nil {
			rt.Fatalf("sh: %v", err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")[1:]
		if !slices.Equal(got, want) {
			rt.Fatalf("%q: %q, the shell splits it into %q", input, got, want)
		}
	})
}

func FuzzSplitInput(f *testing.F) {
	for _, s := range []string{"", "a b", `'a b'`, `"\$"`, "\\\n", "\x00\xff", "''\"\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, input string) {
		words, err := SplitInput(input)
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		expect.MustEqual(t, expect.Result(SplitInput(strings.Join(quoted, " "))).Value(t), words, input)
	})
}

// An input of any bytes must be base64. A task with it has a place, so that no worker of the original TDF claims it.
func TestArguments(t *testing.T) {
	for input, want := range map[string]string{"": "", "AP8=": "\x00\xff", "YSBi": "a b"} {
		d := Defaults("p", "rsync:/p/run.sh", input)
		d.InputEncoding = InputBase64
		args, data, err := d.Arguments()
		expect.NoError(t, d.Validate(), input)
		expect.NoError(t, err, input)
		expect.Len(t, args, 0, input)
		expect.True(t, data != nil, input, args, data, err)
		expect.Equal(t, string(data), want, input)
		expect.Equal(t, d.Place(), class.Plain)
	}
	for _, input := range []string{"AP8", "AP8==", "AP9=", "A", "a b", "_-8=", "'AP8='", "AP8=\n"} {
		d := Defaults("p", "rsync:/p/run.sh", input)
		d.InputEncoding = InputBase64
		expect.True(t, d.Validate() != nil, input, "is valid")
	}
	d := Defaults("p", "rsync:/p/run.sh", "a 'b c'")
	args, data, err := d.Arguments()
	expect.Equal(t, args, []string{"a", "b c"})
	expect.Equal(t, data, nil)
	expect.NoError(t, err)
	d.InputEncoding = "hex"
	expect.True(t, d.Validate() != nil, "an unknown encoding is valid")
}

// A list shows what a task calls, in place of the base64 of its input. Programs may have a member of this name too.
func TestLabel(t *testing.T) {
	for _, row := range []struct {
		encoding         InputEncoding
		meta, want, what string
	}{
		{InputBase64, `{"call":"fit(rate=0.1)","python":"3.11"}`, "fit(rate=0.1)", "a call"},
		{InputBase64, `{"call":7}`, "eA==", "another type"},
		{InputBase64, `{"call":""}`, "eA==", "an empty call"},
		{InputBase64, "no JSON", "eA==", "other metadata"},
		{InputWords, `{"call":"fit(rate=0.1)"}`, "eA==", "a program with arguments"},
	} {
		d := Definition{Input: "eA==", InputEncoding: row.encoding, Meta: row.meta}
		expect.Equal(t, d.Label(), row.want, row.what)
		p := Properties{Input: "eA==", InputEncoding: row.encoding, Meta: row.meta}
		expect.Equal(t, p.Label(), row.want, row.what)
	}
}

// A sweep of a function shows the function and the parameters of each task. Other bytes, and other metadata, do no harm.
func TestLabelOfASweep(t *testing.T) {
	long := strings.Repeat("x", 150)
	for _, row := range []struct{ data, meta, want string }{
		{"#!tdf.call 3.11 work:Model.fit\nx\x9c\x00", `{"rate":0.1,"mode":"fast","of":[1,2]}`, `Model.fit(rate=0.1, mode="fast", of=[1,2])`},
		{"#!tdf.call 3.11 work:fit\n", `{"call":"other()"}`, `fit(call="other()")`},
		{"#!tdf.call 3.11 work:fit\n", `{"a":"` + long + `","b":"` + long + `","c":1}`, `fit(a="` + long + `", …)`},
		{"#!tdf.call 3.11 work:fit\n" + long + long, "", "fit()"},
		{"#!tdf.call 3.11 work:fit\n", `{"a":`, "fit()"},
		{"#!tdf.call 3.11 work:fit\n", `[1,2]`, "fit(1=2)"},
		{"#!tdf.call 3.11 work:\xff\n", `{"a":1}`, ""},
		{"#!tdf.call", `{"a":1}`, ""},
		{"#!/bin/sh a:b\n", `{"a":1}`, ""},
	} {
		p := Properties{Input: base64.StdEncoding.EncodeToString([]byte(row.data)), InputEncoding: InputBase64, Meta: row.meta}
		expect.Equal(t, p.Label(), cmp.Or(row.want, p.Input), row)
		expect.Equal(t, p.CallsFunction(), row.want != "", row)
		p.InputEncoding = InputWords
		expect.Equal(t, p.Label(), p.Input, row)
	}
}
