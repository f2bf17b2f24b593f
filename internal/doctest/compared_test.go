package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

const comparedPage = "docs/compared.md"

// The columns of the tables of docs/compared.md.
const (
	promiseColumn = iota
	keptColumn
	whereColumn
	testColumn
	comparedColumns // the number of columns
)

// Each promise that TDF keeps, also in part or in another way, has a link to a section and a test that exists. A promise
// that TDF does not keep yet has neither.
func TestComparedPromises(t *testing.T) {
	promises, tested := promises(t), 0
	for _, p := range promises {
		kept, _, _ := strings.Cut(p[keptColumn], ":")
		links, tests := link.FindAllStringSubmatch(p[whereColumn], -1), names(p[testColumn])
		switch kept {
		case "not yet":
			expect.Equal(t, p[whereColumn]+p[testColumn], "", p[promiseColumn], "is not kept yet, but has a section or a test")
		case "yes", "in part", "another way":
			expect.NotEqual(t, len(links), 0)
			if len(tests) == 0 {
				expect.Equal(t, p[testColumn], "none")
			}
		default:
			t.Errorf("%q: kept is %q, want yes, in part, another way or not yet", p[promiseColumn], kept)
		}
		for _, m := range links {
			expect.Contains(t, m[1], "#", p[promiseColumn], "links to")
		}
		for _, name := range tests {
			tested++
			expect.Equal(t, testProblem(t, name), "", p[promiseColumn], "names", name)
		}
	}
	expect.Compare(t, len(promises), ">=", 60, tested, "tests were found: does this test still read the page?")
	expect.Compare(t, tested, ">=", 60)
}

// promises returns the rows of the page's tables, without the heads of the tables.
func promises(t testing.TB) [][]string {
	t.Helper()
	var all [][]string
	for _, table := range tables(t, comparedPage) {
		for _, row := range table[1:] {
			expect.MustLen(t, row, comparedColumns, comparedPage, "has a row of … columns", row)
			all = append(all, row)
		}
	}
	return all
}

// namedTest matches the directory of a package and the name of a test, and the name of a script of cmd/tdf.TestScripts.
var namedTest = regexp.MustCompile(`^([a-z/]+)\.((?:Test|Fuzz)\w+)(?:/(\w+))?$`)

// testProblem says why a test's name on the page is wrong. It returns "" if the test exists.
func testProblem(t testing.TB, name string) string {
	t.Helper()
	m := namedTest.FindStringSubmatch(name)
	if m == nil {
		return "want a directory, a dot and the name of a test"
	}
	dir, test, script := m[1], m[2], m[3]
	if dir == "tdf" {
		dir = "."
	}
	declared := func(file string) bool { return strings.Contains("\n"+read(t, file), "\nfunc "+test+"(") }
	if !slices.ContainsFunc(testFiles(t, dir), declared) {
		return "no file " + filepath.Join(dir, "*_test.go") + " has this test"
	}
	if script == "" {
		return ""
	}
	if _, err := os.Stat(filepath.Join(root, dir, "testdata", "script", script+".txt")); err != nil {
		return "there is no script " + script
	}
	return ""
}

// testFiles returns the paths, relative to the root, of a directory's files with tests.
func testFiles(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	expect.NoError(t, err)
	for i, path := range paths {
		paths[i], err = filepath.Rel(root, path)
		expect.NoError(t, err)
	}
	return paths
}
