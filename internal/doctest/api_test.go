package doctest

import (
	"flag"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

var update = flag.Bool("update", false, "write testdata/api.txt")

// public lists the packages that programs import.
var public = []string{
	".", "manager", "manager/managertest", "program", "sweep", "trial", "worker", "worker/workertest",
}

// testdata/api.txt lists the exported names of the packages that programs import. So no name becomes a promise unnoticed.
// After a change, run go test ./internal/doctest -run API -update.
func TestAPI(t *testing.T) {
	var all []string
	for _, file := range files(t, ".go") {
		folder := filepath.ToSlash(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || !slices.Contains(public, folder) {
			continue
		}
		for _, d := range syntax(t, file).Decls {
			for _, name := range exportedNames(d) {
				all = append(all, strings.TrimPrefix(folder+"."+name, ".."))
			}
		}
	}
	slices.Sort(all)
	text := strings.Join(all, "\n") + "\n"
	if *update {
		expect.NoError(t, os.WriteFile("testdata/api.txt", []byte(text), 0o644))
	}
	expect.Equal(t, read(t, "internal/doctest/testdata/api.txt"), text, "the exported names; if they are wanted, pass -update")
	all = slices.DeleteFunc(all, func(name string) bool { return strings.Contains(name, ".") })
	expect.Compare(t, len(all), "<=", 60, "names of package tdf")
}

// exportedNames returns the exported names that a declaration declares, methods as TYPE.METHOD.
func exportedNames(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		switch {
		case !d.Name.IsExported():
		case d.Recv == nil:
			names = []string{d.Name.Name}
		case ast.IsExported(receiver(d)):
			names = []string{receiver(d) + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) })
	}
	return names
}
