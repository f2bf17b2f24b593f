package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/admin"
)

// Each step that package admin declares has a command.
func TestStepsHaveCommands(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../admin/fact.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Step") && len(spec.Values) == 1 {
			steps++
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil || stepCommands[admin.Step(value)] == "" {
				t.Errorf("the step %s has no command", spec.Names[0].Name)
			}
		}
		return true
	})
	if steps != len(stepCommands) {
		t.Errorf("%d steps, and %d commands", steps, len(stepCommands))
	}
}

func TestWithCommands(t *testing.T) {
	for want, fix := range map[string]admin.Fix{
		"wait":                         {Text: "wait"},
		"retry the task (tdf retry 7)": {Text: "retry the task", Steps: []admin.Step{admin.StepRetry}},
		"a, or b (tdf close CAMPAIGN, tdf requeue 7)": {Text: "a, or b", Steps: []admin.Step{admin.StepClose, admin.StepRequeue}},
	} {
		if got := WithCommands(fix, 7); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
