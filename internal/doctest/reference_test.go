package doctest

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// docs/operations.md lists the settings of a namespace with their defaults, in the order of the code.
func TestSettings(t *testing.T) {
	heading := "## Settings of a namespace"
	listed := rows(t, "docs/operations.md", heading)
	expect.Equal(t, first(listed), task.SettingNames, "docs/operations.md", heading)
	for _, row := range listed {
		name := names(row[0])[0]
		expect.Equal(t, row[1], "`"+task.DefaultSettings().Value(name)+"`", "docs/operations.md", heading, name)
	}
}

// A variable that a worker sets for a program, such as TDF_ROUND=7.
var variable = regexp.MustCompile(`^(TDF_[A-Z_]+)=`)

// docs/programs.md and docs/resources.md list the variables that a worker sets for a program.
func TestVariables(t *testing.T) {
	for page, of := range map[string]struct{ heading, file string }{
		"docs/programs.md":  {"### The environment", "worker/environment.go"},
		"docs/resources.md": {"## What a program finds", "internal/worker/resources/environment.go"},
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
		same(t, page+", variables", set, listed)
		expect.Compare(t, len(set), ">=", 3)
	}
}
