package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

const root = "../.."

func read(t testing.TB, path string) string {
	t.Helper()
	text := expect.Result(os.ReadFile(filepath.Join(root, path))).Value(t)
	return string(text)
}

// files returns the paths, relative to the root, of the project's files with one of the endings.
func files(t testing.TB, endings ...string) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || path == "bin" || path == "work"):
			return fs.SkipDir
		case !d.IsDir() && slices.Contains(endings, filepath.Ext(path)):
			found = append(found, path)
		}
		return nil
	})
	expect.NoError(t, err)
	return found
}

var code = regexp.MustCompile("(?s)```.*?```")

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinks(t *testing.T) {
	links := 0
	for _, page := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, page), ""), -1) {
			target, section, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			path := page // a link to a section of the same page has no target
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			} else if section != "" && !slices.Contains(anchors(read(t, path)), section) {
				t.Errorf("%s links to %s, but %s has no such section", page, m[1], path)
			}
		}
	}
	expect.True(t, links >= 15, "only", links, "links were found: does this test still read the pages?")
}

// A reference is docs/page.md, or docs/page.md, "Heading". It may span two lines of a comment.
var (
	reference  = regexp.MustCompile(`(docs/[a-z]+\.md)(?:,\s+"([^"]+)")?`)
	lineBreaks = regexp.MustCompile(`\s*\n\s*(?://|--|#)?\s*`)
)

func TestReferences(t *testing.T) {
	found := 0
	for _, file := range files(t, ".go", ".lua", ".md", ".cfg") {
		if strings.HasPrefix(file, "internal/doctest/") {
			continue
		}
		text := lineBreaks.ReplaceAllString(read(t, file), " ")
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			found++
			expect.Equal(t, referenceProblem(t, m[1], m[2]), "", file, "refers to", m[1])
		}
	}
	expect.True(t, found >= 40, "only", found, "references were found: does this test still read the code?")
}

// referenceProblem says why a reference is wrong. It returns "" if the reference is right.
func referenceProblem(t testing.TB, page, heading string) string {
	text, err := os.ReadFile(filepath.Join(root, page))
	switch {
	case err != nil:
		return "which does not exist"
	case heading != "" && !slices.Contains(headings(string(text)), heading):
		return "which has no heading " + heading
	}
	return ""
}

// headings returns the texts of a page's headings.
func headings(page string) []string {
	var all []string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if title := strings.TrimLeft(line, "#"); title != line {
			all = append(all, strings.Trim(title, " `"))
		}
	}
	return all
}

// notInAnchors matches the characters that GitHub leaves out of the anchor of a heading.
var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) []string {
	all := headings(code.ReplaceAllString(page, ""))
	for i, heading := range all {
		all[i] = strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
	}
	return all
}

// path matches the path of a file or a directory in backticks.
var path = regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]+)*(?:\\.(?:go|lua|md|cfg|mod)|/))`")

func TestFilesOfArchitecture(t *testing.T) {
	found := path.FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1)
	for _, m := range found {
		expect.Result(os.Stat(filepath.Join(root, m[1]))).OK(t, "ARCHITECTURE.md names", m[1], "which does not exist")
	}
	expect.True(t, len(found) >= 40, "only", len(found), "files were found: does this test still read the page?")
}

// An example of the package worker contains the Go code in the section "Rounds without a process" of docs/programs.md.
func TestShownRunnerIsInExample(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/programs.md"), "## Rounds without a process\n")
	section, _, _ = strings.Cut(section, "\n## ")
	flat := func(code string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "") }
	example := flat(read(t, "worker/example_test.go"))
	blocks := strings.Split(section, "```go\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```\n")
		expect.Contains(t, example, flat(block), "worker/example_test.go does not contain", block)
	}
	expect.Len(t, blocks, 2, "blocks of code")
}

// docs/programs.md shows, unchanged, the programs that tests of internal/worker/rounddir run.
func TestShownProgramsAreTested(t *testing.T) {
	page := read(t, "docs/programs.md")
	for language, file := range map[string]string{"sh": "counter.sh", "python": "counter.py"} {
		_, rest, found := strings.Cut(page, "\n```"+language+"\n")
		block, _, closed := strings.Cut(rest, "```\n")
		expect.True(t, found, "docs/programs.md does not show internal/worker/rounddir/testdata/", file, "unchanged")
		expect.True(t, closed, "docs/programs.md does not show internal/worker/rounddir/testdata/", file, "unchanged")
		expect.Equal(t, block, read(t, "internal/worker/rounddir/testdata/"+file), "docs/programs.md does not show internal/worker/rounddir/testdata/", file, "unchanged")
	}
}
