package doctest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// docs/lifecycle.md lists the transitions that users make, and docs/metrics.md names only transitions and states that exist.
func TestTransitions(t *testing.T) {
	verbs, byHand, states := []string{}, []string{}, []string{}
	for _, tr := range tdf.Transitions {
		verbs = append(verbs, string(tr.Verb))
		if slices.Contains(tr.By, tdf.Manager) && tr.Verb != tdf.VerbOpen && tr.Verb != tdf.VerbReplace {
			byHand = append(byHand, string(tr.Verb))
		}
	}
	for _, s := range tdf.States {
		states = append(states, string(s))
	}
	var listed []string
	for _, row := range below(t, "docs/lifecycle.md", "| transition | command | what it does |") {
		listed = append(listed, row[0])
	}
	same(t, "docs/lifecycle.md, by hand", byHand, listed)
	metrics := read(t, "docs/metrics.md")
	for label, known := range map[string][]string{"transition": verbs, "to": states} {
		named := submatches(t, `\b`+label+`=~?"([^"]+)"`, metrics)
		expect.Compare(t, len(named), ">", 1, label)
		for _, name := range strings.FieldsFunc(strings.Join(named, "|"), func(r rune) bool { return strings.ContainsRune(`\|`, r) }) {
			expect.True(t, slices.Contains(known, name), "docs/metrics.md names", label, name)
		}
	}
	_, kinds, _ := strings.Cut(metrics, "The kinds of finds are ")
	kinds, _, _ = strings.Cut(kinds, "\n\n")
	same(t, "docs/metrics.md, kinds of finds", literals(t, "redisstate/counting.go", "FindKinds"), names(kinds))
}

// docs/metrics.md lists the labels of each metric, beside namespace.
func TestLabelsOfMetrics(t *testing.T) {
	labels := map[string][]string{}
	ast.Inspect(syntax(t, "metrics/writer.go"), func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 3 {
			name, _ := text(call.Args[1])
			for _, label := range call.Args[3:] {
				s, _ := text(label)
				labels[name] = append(labels[name], s)
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
