package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var tree = map[string]string{
	"page.md": `# A heading of four words

The first sentence is here. The second one
has two lines, and **marks**. Short one.

- An item in a list
  that goes on
- two words

    a block of code

| a cell of words | code |
| --- | --- |
| [Links](page.md) keep their texts. | ` + "`v1.2 is no end` of it" + ` |

` + "```sh\nsome more code here\n```\n",
	"code.go": `// Package p has a doc comment.
package p

import "errors"

// F does one thing. It returns nothing:
//
//	code in a comment
//
// And it goes on.
func F() { // behind the code
	// Inside of the function.
	var field string // behind a declaration
	errors.New("open task: the state is wrong")
	fmt.Errorf("two words" + " become five: %w", err)
	flags.StringVar(&field, "name of a flag", "no default value", "the name of it")
	_ = Command{Use: "how to use", Short: "Do a thing", Long: "One long line\nof help."}
	// The first sentence is here.
}

type t struct { F string ` + "`json:\"no\" only:\"sentence of tags\"`" + ` }
`,
	"code_test.go": "package p\n\n// TestF is no test.\nfunc TestF() { println(\"no sentence of tests\") }\n",
	"script.lua":   "-- A comment in Lua,\n-- of two lines.\nlocal x = 1 -- and one behind\nreturn x\n-- one that is separate\n",
	"a.cfg":        "# The configuration of it.\nkey=value of three words\n",
	"script":       "#!/bin/sh\n# A script without an ending.\n",
	"other":        "# This is no script.\n",
	"bin/page.md":  "This is not read.\n",
}

func written(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range tree {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestEverySentenceIsFound(t *testing.T) {
	var out, counts bytes.Buffer
	if err := run(&out, &counts, written(t), 1, 1000, 0); err != nil {
		t.Fatal(err)
	}
	want := `1	page.md:3	The second one has two lines, and marks.
2	page.md:6	An item in a list that goes on
3	page.md:12	a cell of words
4	page.md:14	Links keep their texts.
5	page.md:14	` + "`v1.2 is no end` of it" + `
6	code.go:16	the name of it
7	code.go:17	Do a thing
8	code.go:17	One long line of help.
9	code.go:14	open task: the state is wrong
10	code.go:15	two words become five: %w
11	code.go:16	name of a flag
12	code.go:16	no default value
13	code.go:1	Package p has a doc comment.
14	code.go:6	F does one thing.
15	code.go:6	It returns nothing:
16	code.go:10	And it goes on.
17	code_test.go:3	TestF is no test.
18	a.cfg:1	The configuration of it.
19	code.go:11	behind the code
20	code.go:12	Inside of the function.
21	code.go:13	behind a declaration
22	code.go:18	The first sentence is here.
23	script:2	A script without an ending.
24	script.lua:1	A comment in Lua, of two lines.
25	script.lua:3	and one behind
26	script.lua:5	one that is separate
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := counts.String(), "pages: 5 of 5\nhelp: 3 of 3\nmessages: 4 of 4\ndoc comments: 5 of 5\nother comments: 9 of 9\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func many(n int) (all []sentence) {
	for i := range n {
		all = append(all, sentence{"file", fmt.Sprintf("sentence %d of many", i), i})
	}
	return all
}

func TestSharesAreInProportionAndNotTooSmall(t *testing.T) {
	counts := func(n ...int) map[string][]sentence {
		all := map[string][]sentence{}
		for i, kind := range kinds {
			all[kind] = many(n[i])
		}
		return all
	}
	for _, c := range []struct {
		of   map[string][]sentence
		n    int
		want []int
	}{
		{counts(1000, 1000, 1000, 1000, 1000), 300, []int{60, 60, 60, 60, 60}},
		{counts(2000, 100, 900, 4000, 1000), 300, []int{68, 30, 31, 137, 34}},
		{counts(5, 1000, 1000, 1000, 1000), 105, []int{5, 25, 25, 25, 25}},
		{counts(1, 2, 3, 4, 5), 300, []int{1, 2, 3, 4, 5}},
		{counts(0, 0, 0, 0, 0), 300, []int{0, 0, 0, 0, 0}},
	} {
		shares := divide(c.of, c.n)
		var got []int
		for _, kind := range kinds {
			got = append(got, shares[kind])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d: got %v, want %v", c.n, got, c.want)
		}
	}
}

func TestLinesAround(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("a\nb\nc\nd"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[int]string{1: "| a | b ", 3: "| b | c | d "} {
		var out strings.Builder
		if err := showLines(&out, path, line, 1); err != nil {
			t.Fatal(err)
		}
		if got := strings.NewReplacer("\t", "", "\n", " ").Replace(out.String()); got != want {
			t.Errorf("line %d: %q, want %q", line, got, want)
		}
	}
}

func TestTheSeedDecides(t *testing.T) {
	root := written(t)
	sample := func(seed int) string {
		var out strings.Builder
		if err := run(&out, io.Discard, root, seed, 10, 0); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if one, again := sample(1), sample(1); one != again || strings.Count(one, "\n") != 10 {
		t.Errorf("the same seed: %s\nand\n%s", one, again)
	}
	if sample(1) == sample(2) {
		t.Error("another seed has the same sample")
	}
	all := many(1000)
	kept := 0
	for _, s := range draw(all[10:], 1, 100) {
		if slices.Contains(draw(all, 1, 100), s) {
			kept++
		}
	}
	if kept < 90 {
		t.Errorf("%d of 100 are left when 1 %% of the files are gone", kept)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	if err := run(io.Discard, io.Discard, filepath.Join(t.TempDir(), "none"), 1, 1, 0); err == nil {
		t.Error("a directory that is not there was read")
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("no Go"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(io.Discard, io.Discard, root, 1, 1, 0); err == nil {
		t.Error("a file that is no Go was read")
	}
}
