package doctest

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

const module = "github.com/tdf-framework/tdf"

// imports returns the imports of the Go files in each folder. If ofTests is true, it reads only test files. If ofTests
// is false, it reads only the other files.
func imports(t testing.TB, ofTests bool) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, file := range files(t, ".go") {
		folder := filepath.Dir(file)
		if strings.HasSuffix(file, "_test.go") != ofTests || slices.Contains([]string{"bench", "tools"}, top(file)) || slices.Contains([]string{"internal/deploytest/compose", "internal/deploytest/kubernetes", "internal/doctest", "internal/web/clienttest"}, folder) {
			continue
		}
		if all[folder] == nil {
			all[folder] = []string{}
		}
		for _, spec := range syntax(t, file).Imports {
			imported, _ := text(spec.Path)
			all[folder] = append(all[folder], imported)
		}
	}
	return all
}

// folderOf returns the folder of an imported package. It returns false if the package belongs to another module.
func folderOf(imported string) (folder string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// docs/development.md lists exactly the imported modules, and marks the modules that only tests import.
func TestDependencies(t *testing.T) {
	code, tests := imports(t, false), imports(t, true)
	for folder := range code {
		if helpsTests(folder) {
			tests[folder] = append(tests[folder], code[folder]...)
			delete(code, folder)
		}
	}
	used, tested := foreignPackages(code), foreignPackages(tests)
	var listed []string
	for _, row := range rows(t, "docs/development.md", "## Dependencies") {
		forTests := strings.HasPrefix(row[1], "tests:")
		for _, m := range names(row[0]) {
			listed = append(listed, m)
			of := func(path string) bool { return path == m || strings.HasPrefix(path, m+"/") }
			expect.NotEqual(t, slices.ContainsFunc(used, of), forTests, m)
			expect.True(t, slices.ContainsFunc(append(used, tested...), of), m, row[1])
		}
	}
	for _, path := range append(used, tested...) {
		of := func(m string) bool { return path == m || strings.HasPrefix(path, m+"/") }
		expect.True(t, slices.ContainsFunc(listed, of), "docs/development.md does not list", path)
	}
}

// A program with handlers links few modules.
func TestModulesOfAWorker(t *testing.T) {
	imports(t, false) // so that Go's test cache notes changes
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", module+"/worker")
	got := strings.Fields(string(expect.Result(list.Output()).Value(t)))
	slices.Sort(got)
	expect.Equal(t, strings.Join(slices.Compact(got), "\n"), strings.Join([]string{
		"github.com/cespare/xxhash/v2", "github.com/redis/go-redis/v9", "github.com/robfig/cron/v3", module, "go.uber.org/atomic",
		"golang.org/x/sys", "gopkg.in/ini.v1",
	}, "\n"))
}

// helpsTests reports whether a package is a helper of tests, such as internal/redistest.
func helpsTests(folder string) bool {
	return strings.HasPrefix(folder, "internal/") && strings.HasSuffix(folder, "test")
}

// foreignPackages returns the imported packages that belong to other modules.
func foreignPackages(all map[string][]string) []string {
	var paths []string
	for _, imported := range all {
		for _, path := range imported {
			host, _, _ := strings.Cut(path, "/")
			if _, ours := folderOf(path); !ours && strings.Contains(host, ".") {
				paths = append(paths, path)
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(paths)))
}
