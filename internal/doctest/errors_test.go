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
var internalFolders = []string{"internal", "redisstate"}

// Each exported error has a code, and docs/manager.md lists the codes and the errors that users handle.
func TestErrorsHaveCodes(t *testing.T) {
	const heading = "## Codes of errors"
	_, section, _ := strings.Cut(read(t, "docs/manager.md"), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	expect.Equal(t, first(rows(t, "docs/manager.md", heading)), declaredCodes(t, "internal/task/code.go", "Code"), "docs/manager.md", heading)
	found := 0
	for _, file := range files(t, ".go") {
		folder := filepath.Dir(file)
		if strings.HasSuffix(file, "_test.go") || slices.Contains([]string{"bench", "tools", "cmd", "examples"}, top(file)) || helpsTests(folder) {
			continue
		}
		parsed := syntax(t, file)
		for name, hasCode := range exportedErrors(parsed) {
			found++
			expect.True(t, hasCode, file, name, "has no code: use task.NewError, or add the method Code")
			if !slices.ContainsFunc(internalFolders, func(f string) bool { return strings.HasPrefix(folder+"/", f+"/") }) {
				expect.Contains(t, section, "`"+parsed.Name.Name+"."+name+"`", "docs/manager.md", heading)
			}
		}
	}
	expect.Compare(t, found, ">=", 40, "exported errors")
}

// exportedErrors returns the errors that a file declares, variables Err… and types with a method Error, and whether each has
// a code. A type and its methods are in one file.
func exportedErrors(file *ast.File) map[string]bool {
	errors, codes := map[string]bool{}, map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || !ast.IsExported(receiver(d)) {
				continue
			}
			codes[receiver(d)] = codes[receiver(d)] || d.Name.Name == "Code"
			if d.Name.Name == "Error" && receiver(d) != "Task" { // Task.Error returns the text of a run
				errors[receiver(d)] = false
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Err") && len(v.Values) == 1 {
					errors[v.Names[0].Name] = namesCode(v)
				}
			}
		}
	}
	for name := range errors {
		errors[name] = errors[name] || codes[name]
	}
	return errors
}

// namesCode reports whether a declaration names a code, or is another name of an error.
func namesCode(v *ast.ValueSpec) (found bool) {
	ast.Inspect(v.Values[0], func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		found = found || ok && (strings.HasPrefix(name.Name, "Code") || strings.HasPrefix(name.Name, "Err") && name.Name != "Errorf")
		return !found
	})
	return found
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
	listed, got := first(rows(t, "docs/operations.md", heading)), declaredCodes(t, "internal/admin/fact.go", "Fact")
	expect.True(t, slices.Equal(listed, got), "docs/operations.md", heading, "lists the codes", listed, "and internal/admin/fact.go has", got)
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
