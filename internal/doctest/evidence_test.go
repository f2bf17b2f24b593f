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

// namedTest matches the directory of a package and the name of a test, and the name of a script of cmd/tdf.TestScripts.
var namedTest = regexp.MustCompile(`^([a-z/]+)\.((?:Test|Fuzz)\w+)(?:/(\w+))?$`)

// The tests in the last columns of these pages exist. A name on docs/guarantees.md can also be a row of internal/broker/brokertest.
func TestNamedTests(t *testing.T) {
	brokertest := strings.Split(read(t, "internal/broker/brokertest/testdata/table.txt"), "\n")
	for page, least := range map[string]int{"docs/compared.md": 60, "docs/security.md": 30, "docs/guarantees.md": 30} {
		found := 0
		for _, table := range tables(t, page) {
			if !strings.HasPrefix(table[0][len(table[0])-1], "test") {
				continue
			}
			for _, row := range table[1:] {
				for _, name := range names(row[len(row)-1]) {
					found++
					if !slices.Contains(brokertest, name) {
						expect.Equal(t, testProblem(t, name), "", page, row[0], "names", name)
					}
				}
			}
		}
		expect.Compare(t, found, ">=", least, page, "names tests: does this test still read the page?")
	}
}

// A promise on docs/compared.md that TDF keeps, also in part or in another way, has a link to a section and a test or the
// word none. A promise that TDF does not keep yet has neither.
func TestComparedPromises(t *testing.T) {
	for _, table := range tables(t, "docs/compared.md") {
		for _, row := range table[1:] {
			kept, _, _ := strings.Cut(row[1], ":")
			if kept == "not yet" {
				expect.Equal(t, row[2]+row[3], "", row[0])
				continue
			}
			expect.True(t, slices.Contains([]string{"yes", "in part", "another way"}, kept), row[0], "is kept", kept)
			expect.Contains(t, row[2], "#", row[0])
			expect.NotEqual(t, row[3], "", row[0])
		}
	}
}

// testProblem says why a test's name on a page is wrong. It returns "" if the test exists.
func testProblem(t testing.TB, name string) string {
	t.Helper()
	m := namedTest.FindStringSubmatch(name)
	if m == nil {
		return "want a directory, a dot and the name of a test"
	}
	dir := strings.TrimPrefix(m[1], "tdf")
	paths := expect.Result(filepath.Glob(filepath.Join(root, dir, "*_test.go"))).Value(t)
	declared := func(path string) bool {
		return strings.Contains("\n"+string(expect.Result(os.ReadFile(path)).Value(t)), "\nfunc "+m[2]+"(")
	}
	if !slices.ContainsFunc(paths, declared) {
		return "no test of " + dir + " has this name"
	}
	_, err := os.Stat(filepath.Join(root, dir, "testdata", "script", m[3]+".txt"))
	if m[3] != "" && err != nil {
		return "there is no such script"
	}
	return ""
}
