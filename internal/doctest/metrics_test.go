package doctest

import (
	"go/ast"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// docs/metrics.md lists the labels of each metric, beside namespace.
func TestLabelsOfMetrics(t *testing.T) {
	labels := map[string][]string{}
	ast.Inspect(syntax(t, "internal/metrics/writer.go"), func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 3 {
			name, _ := text(call.Args[1])
			for _, label := range call.Args[3:] {
				s, _ := text(label)
				labels[name] = append(labels[name], s)
			}
		}
		return true
	})
	ast.Inspect(syntax(t, "internal/metrics/connection.go"), func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 4 {
			if list, ok := call.Args[2].(*ast.CompositeLit); ok {
				name, _ := text(call.Args[0])
				label, _ := text(list.Elts[0])
				labels[name] = append(labels[name], label)
			}
		}
		return true
	})
	labelled := 0
	for _, table := range tables(t, "docs/metrics.md") {
		for _, row := range table {
			if metric := names(row[0]); table[0][1] == "labels" && len(metric) > 0 {
				same(t, "docs/metrics.md, labels of "+metric[0], labels[metric[0]], names(row[1]))
				labelled += len(labels[metric[0]])
			}
		}
	}
	expect.Compare(t, labelled, ">", 10)
}
