package doctest

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// docs/operations.md lists the settings of a namespace, in the order of the code.
func TestSettings(t *testing.T) {
	heading := "## Settings of a namespace"
	expect.Equal(t, first(rows(t, "docs/operations.md", heading)), tdf.SettingNames, "docs/operations.md", heading)
}

// A variable that a worker sets for a program, such as TDF_ROUND=7.
var variable = regexp.MustCompile(`^(TDF_[A-Z_]+)=`)

// docs/programs.md and docs/resources.md list the variables that a worker sets for a program.
func TestVariables(t *testing.T) {
	for page, of := range map[string]struct{ heading, file string }{
		"docs/programs.md":  {"### The environment", "worker/environment.go"},
		"docs/resources.md": {"## What a program finds", "worker/resources/environment.go"},
	} {
		var set []string
		ast.Inspect(syntax(t, of.file), func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				s, _ := text(e)
				if m := variable.FindStringSubmatch(s); m != nil {
					set = append(set, m[1])
				}
			}
			return true
		})
		listed := slices.DeleteFunc(first(rows(t, page, of.heading)), func(name string) bool { return !variable.MatchString(name + "=") })
		slices.Sort(set)
		slices.Sort(listed)
		expect.Equal(t, cmp.Diff(set, listed), "", "variables, code against", page, "-code +page")
		expect.Compare(t, len(set), ">=", 3)
	}
}
