package doctest

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// value returns the value of a constant. The name consists of the folder of its package and its own name, such as
// web.maxBody, or tdf.MaxName for the root package.
func value(t testing.TB, name string) *types.Const {
	t.Helper()
	dot := strings.LastIndexByte(name, '.')
	folder := strings.TrimPrefix(name[:dot], "tdf")
	var found []*types.Const
	for _, c := range load(folder).constants {
		if c.Name() == name[dot+1:] {
			found = append(found, c)
		}
	}
	if len(found) != 1 || found[0].Val().Kind() == constant.Unknown {
		t.Errorf("no value, or several, of %s: %v", name, found)
		return types.NewConst(token.NoPos, nil, name, types.Typ[types.UntypedInt], constant.MakeInt64(0))
	}
	return found[0]
}

// A source is a package whose constants were computed. Most errors do not matter, because packages of other modules are
// not loaded.
type source struct {
	*types.Package
	constants []*types.Const
}

var loaded = map[string]*source{}

// load returns the package in a folder.
func load(folder string) *source {
	if s := loaded[folder]; s != nil {
		return s
	}
	s := &source{}
	loaded[folder] = s
	set := token.NewFileSet()
	var parsed []*ast.File
	paths, _ := filepath.Glob(filepath.Join(root, folder, "*.go"))
	for _, path := range paths {
		if file, err := parser.ParseFile(set, path, nil, 0); err == nil && !strings.HasSuffix(path, "_test.go") {
			parsed = append(parsed, file)
		}
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	checker := types.Config{Importer: importer{}, IgnoreFuncBodies: true, Error: func(error) {}}
	s.Package, _ = checker.Check(filepath.Join(module, folder), set, parsed, info)
	for _, object := range info.Defs {
		if c, ok := object.(*types.Const); ok {
			s.constants = append(s.constants, c)
		}
	}
	return s
}

// An importer imports the packages of this module, and package time.
type importer struct{}

func (importer) Import(path string) (*types.Package, error) {
	if folder, ok := folderOf(path); ok {
		return load(strings.TrimPrefix(folder, ".")).Package, nil
	}
	if path == "time" {
		return clock(), nil
	}
	return nil, os.ErrNotExist
}

// clock returns the part of package time that constants need.
var clock = sync.OnceValue(func() *types.Package {
	set := token.NewFileSet()
	file, parsing := parser.ParseFile(set, "time.go", `package time
		type Duration int64
		const (Nanosecond Duration = 1; Microsecond = 1e3*Nanosecond; Millisecond = 1e3*Microsecond; Second = 1e3*Millisecond
			Minute = 60*Second; Hour = 60*Minute)`, 0)
	p, checking := new(types.Config).Check("time", set, []*ast.File{file}, nil)
	if err := errors.Join(parsing, checking); err != nil {
		panic(err)
	}
	return p
})
