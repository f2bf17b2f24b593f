package doctest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The diagram of docs/lifecycle.md shows all transitions that change the state, and no others.
func TestDiagramHasEveryTransition(t *testing.T) {
	var want []string
	for _, tr := range tdf.Transitions {
		for _, from := range tr.From {
			if from != tr.To {
				want = append(want, edge(string(tr.Verb), string(from), string(tr.To)))
			}
		}
	}
	drawn := edges(t, block(t, "docs/lifecycle.md", "mermaid"))
	slices.Sort(want)
	slices.Sort(drawn)
	expect.Equal(t, cmp.Diff(want, drawn), "", "transitions, code against the diagram of docs/lifecycle.md (-code +diagram")
}

func edge(verb, from, to string) string { return from + " -> " + to + ": " + verb }

var (
	arrow = regexp.MustCompile(`^(.+) -->\|(.+)\| (.+)$`)
	label = regexp.MustCompile(`\(\[\w+\]\)`) // matches the label of a node that is not a state
)

// edges returns the edges of a flowchart. If an edge begins or ends at a subgraph, edges returns one edge for each node
// of the subgraph.
func edges(t testing.TB, chart string) (all []string) {
	t.Helper()
	nodes := subgraphs(chart)
	nodes["new"], nodes["removed"] = []string{string(tdf.None)}, []string{string(tdf.None)}
	for line := range strings.Lines(chart) {
		line = label.ReplaceAllString(strings.TrimSpace(line), "")
		m := arrow.FindStringSubmatch(line)
		if m == nil {
			expect.True(t, !strings.Contains(line, "--"), "the test cannot parse an edge of the diagram", line)
			continue
		}
		for side := range strings.SplitSeq(m[1], " & ") {
			for _, from := range states(nodes, side) {
				for verb := range strings.SplitSeq(m[2], ", ") {
					for _, to := range states(nodes, m[3]) {
						all = append(all, edge(verb, from, to))
					}
				}
			}
		}
	}
	return all
}

// subgraphs returns the nodes of each subgraph.
func subgraphs(chart string) map[string][]string {
	all := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?s)subgraph (\w+)\n(.*?)\n\s*end\n`).FindAllStringSubmatch(chart, -1) {
		all[m[1]] = regexp.MustCompile(`\w+`).FindAllString(m[2], -1)
	}
	return all
}

// states returns the states that a node or a subgraph stands for.
func states(nodes map[string][]string, node string) []string {
	if of, ok := nodes[node]; ok {
		return of
	}
	return []string{node}
}
