package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Each step that package admin declares has a command.
func TestStepsHaveCommands(t *testing.T) {
	file := expect.Result(parser.ParseFile(token.NewFileSet(), "../../../../admin/fact.go", nil, 0)).Value(t)
	steps := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Step") && len(spec.Values) == 1 {
			steps++
			value := expect.Result(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)).Value(t)
			expect.NotEqual(t, stepCommands[admin.Step(value)], "")
		}
		return true
	})
	expect.Equal(t, steps, len(stepCommands), "steps … commands")
}

func TestWithCommands(t *testing.T) {
	for want, fix := range map[string]admin.Fix{
		"wait":                         {Text: "wait"},
		"retry the task (tdf retry 7)": {Text: "retry the task", Steps: []admin.Step{admin.StepRetry}},
		"a, or b (tdf close CAMPAIGN, tdf requeue 7)": {Text: "a, or b", Steps: []admin.Step{admin.StepClose, admin.StepRequeue}},
	} {
		expect.Equal(t, WithCommands(fix, 7), want)
	}
}
