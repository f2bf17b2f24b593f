package doctest

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// internalFolders lists the folders whose errors users do not handle. Folders below them count too.
var internalFolders = []string{"internal", "redisstate", "worker/process"}

// Each exported error has a code, and docs/manager.md lists the errors that users handle.
func TestErrorsHaveCodes(t *testing.T) {
	heading := "## Codes of errors"
	_, section, _ := strings.Cut(read(t, "docs/manager.md"), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	row := map[string][]string{} // the codes in whose rows an error is listed
	var codes []string
	for _, r := range rows(t, "docs/manager.md", heading) {
		code := names(r[0])[0]
		codes = append(codes, code)
		for _, name := range names(r[2]) {
			row[name] = append(row[name], code)
		}
	}
	got := declaredCodes(t, "code.go", "Code")
	expect.True(t, slices.Equal(codes, got), "docs/manager.md lists the codes", codes, "and code.go has", got)
	found := exportedErrors(t)
	expect.True(t, len(found) >= 40, "found only", len(found), "exported errors")
	for _, e := range found {
		switch {
		case e.code == "":
			t.Errorf("%s: %s has no code: use tdf.NewError, or add the method Code", e.folder, e.name)
		case slices.ContainsFunc(internalFolders, func(f string) bool { return strings.HasPrefix(e.folder+"/", f+"/") }):
		case e.code != computed && !slices.Contains(row[e.name], e.code):
			t.Errorf("docs/manager.md, %q, does not list %s in the row of %s", heading, e.name, e.code)
		case !strings.Contains(section, "`"+e.name+"`"):
			t.Errorf("docs/manager.md, %q, does not list %s", heading, e.name)
		}
	}
}

// computed is the code of an error if the source does not name the code, but computes it.
const computed = "computed"

type exportedError struct{ folder, name, code string }

// exportedErrors returns the errors that packages export: variables Err…, and types with a method Error.
func exportedErrors(t testing.TB) []exportedError {
	codes := map[string]string{} // by package and type
	var all []exportedError
	for _, file := range files(t, ".go") {
		folder := filepath.Dir(file)
		if strings.HasSuffix(file, "_test.go") || slices.Contains([]string{"bench", "tools", "cmd", "examples"}, top(file)) || helpsTests(folder) {
			continue
		}
		parsed := syntax(t, file)
		qualified := func(name string) string { return parsed.Name.Name + "." + name }
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && ast.IsExported(receiver(fn)) {
				switch fn.Name.Name {
				case "Code":
					codes[folder+receiver(fn)] = codeIn(fn)
				case "Error":
					if fn.Type.Params.NumFields() == 0 && receiver(fn) != "Task" { // Task.Error returns the text of a run
						all = append(all, exportedError{folder, qualified(receiver(fn)), ""})
					}
				}
			}
			for _, v := range errorVariables(d) {
				code := codeIn(v)
				if sel, ok := v.Values[0].(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "Err") { // another name of an error
					code = computed
				}
				all = append(all, exportedError{folder, qualified(v.Names[0].Name), code})
			}
		}
	}
	for i, e := range all {
		if e.code == "" {
			_, name, _ := strings.Cut(e.name, ".")
			all[i].code = codes[e.folder+name]
		}
	}
	return all
}

// errorVariables returns the specifications of exported variables Err….
func errorVariables(d ast.Decl) []*ast.ValueSpec {
	var all []*ast.ValueSpec
	if decl, ok := d.(*ast.GenDecl); ok {
		for _, spec := range decl.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Err") && len(v.Values) == 1 {
				all = append(all, v)
			}
		}
	}
	return all
}

func receiver(fn *ast.FuncDecl) string {
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// codeIn returns the code that a part of the source names. It returns computed if a method computes the code, and "" if the part
// is a variable that names no code.
func codeIn(part ast.Node) string {
	var found []string
	ast.Inspect(part, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && strings.HasPrefix(name.Name, "Code") && len(name.Name) > len("Code") {
			found = append(found, name.Name)
		}
		return true
	})
	_, method := part.(*ast.FuncDecl)
	switch {
	case len(found) == 1 && found[0] != "CodeOf":
		return snake(strings.TrimPrefix(found[0], "Code"))
	case method:
		return computed
	}
	return ""
}

// snake returns a name such as NotFound as not_found.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r < 'a' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// docs/operations.md lists the codes of the reasons that explain, doctor and watch give.
func TestReasonsHaveCodes(t *testing.T) {
	heading := "### Codes of reasons"
	listed, got := first(rows(t, "docs/operations.md", heading)), declaredCodes(t, "admin/fact.go", "Fact")
	expect.True(t, slices.Equal(listed, got), "docs/operations.md", heading, "lists the codes", listed, "and admin/fact.go has", got)
}

// declaredCodes returns the values of a file's constants with a prefix.
func declaredCodes(t testing.TB, file, prefix string) []string {
	var all []string
	ast.Inspect(syntax(t, file), func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, prefix) && len(v.Values) == 1 {
			value, _ := text(v.Values[0].(*ast.BasicLit))
			want := snake(strings.TrimPrefix(v.Names[0].Name, prefix))
			expect.True(t, value == want, file, v.Names[0].Name, "is", value, "want", want)
			all = append(all, value)
		}
		return true
	})
	return all
}
