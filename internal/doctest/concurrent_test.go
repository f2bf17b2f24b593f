package doctest

import (
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// make race tests the packages that use goroutines, channels or locks.
func TestConcurrentPackages(t *testing.T) {
	_, list, _ := strings.Cut(strings.ReplaceAll(read(t, "Makefile"), "\\\n", " "), "\nCONCURRENT := ")
	list, _, _ = strings.Cut(list, "\n")
	var listed []string
	for _, name := range strings.Fields(list) {
		listed = append(listed, filepath.Clean(name))
	}
	tested := imports(t, true)
	concurrent := map[string]bool{"cmd/tdf": true} // tests those below it
	for folder := range imports(t, false) {
		if _, ok := tested[folder]; ok && slices.ContainsFunc(sources(t, folder), func(file string) bool { return isConcurrent(syntax(t, file)) }) {
			concurrent[folder] = true
		}
	}
	expect.Equal(t, slices.Sorted(slices.Values(listed)), slices.Sorted(maps.Keys(concurrent)))
}

func sources(t *testing.T, folder string) []string {
	return slices.DeleteFunc(files(t, ".go"), func(file string) bool {
		return filepath.Dir(file) != folder || strings.HasSuffix(file, "_test.go")
	})
}

func isConcurrent(file *ast.File) bool {
	found := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == `"sync"` || i.Path.Value == `"sync/atomic"`
	})
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.ChanType:
			found = true
		}
		return !found
	})
	return found
}
