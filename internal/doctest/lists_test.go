package doctest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
)

// Tables of pages list exactly the names that the code has. Each table is found by its head.
func TestLists(t *testing.T) {
	roles := constants(t, "internal/access/role.go", "Role")
	users := slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return role == string(access.Worker) })
	skuld := append(submatches(t, `call\("(/\w+)"`, read(t, "internal/web/skuld/skuld.go")), "GET /list_tasks")
	var taskmaster, byHand []string
	route := regexp.MustCompile(`Method:\s+http\.Method(\w+),\s+Path:\s+"([^"]+)"`)
	for _, m := range route.FindAllStringSubmatch(read(t, "internal/web/taskmaster/taskmaster.go"), -1) {
		taskmaster = append(taskmaster, strings.ToUpper(m[1])+" "+m[2])
	}
	for _, tr := range rules.Transitions {
		if slices.Contains(tr.By, rules.Manager) && tr.Verb != rules.VerbOpen && tr.Verb != rules.VerbReplace {
			byHand = append(byHand, string(tr.Verb))
		}
	}
	for _, of := range []struct {
		page, head string
		code       []string
	}{
		{"skuld.md", "| path | body | answer | roles |", skuld},
		{"taskmaster.md", "| route | needs the right to |", taskmaster},
		{"lifecycle.md", "| transition | command | what it does |", byHand},
		{"clusters.md", "| file | content |", folder(t, "deploy/kubernetes")},
		{"dashboard.md", "| role | sees | may change |", users},
		{"dashboard.md", "| kind | shows |", constants(t, "internal/web/dashboard/plot/plot.go", "Kind")},
		{"lifecycle.md", "| fail_on | a round has failed when |", constants(t, "internal/task/properties.go", "FailOn")},
		{"notifications.md", "| kind | when |", constants(t, "internal/notify/notice/notice.go", "Kind")},
		{"operations.md", "| status | meaning |", constants(t, "internal/command/process.go", "Status")},
		{"periodic.md", "| value | at this time |", constants(t, "internal/task/periodic.go", "Overlap")},
		{"periodic.md", "| value | opens |", constants(t, "internal/task/periodic.go", "Missed")},
		{"programs.md", "| name | written by | content |", constants(t, "internal/worker/rounddir/create.go", "")},
		{"programs.md", "| step | what failed |", constants(t, "fetch/errors.go", "Step")},
		{"python.md", "| columns | content |", literals(t, "internal/results/csv.go", "Column", "Columns")},
		{"python.md", "| error | is raised if |", submatches(t, `class (\w+)\(TDFError`, read(t, "python/tdf/errors.py"))},
		{"tdf.md", "| role | may |", roles},
		{"tdf.md", "| status | meaning |", constants(t, "cmd/tdf/internal/cli/usage.go", "statusDone", "Status", "statusProblems")},
	} {
		var listed []string
		for _, row := range below(t, "docs/"+of.page, of.head) {
			for _, name := range append(names(row[0]), oneWord.FindString(row[0])) {
				name, _, _ = strings.Cut(name, "(")
				listed = append(listed, strings.TrimSuffix(name, "/"))
			}
		}
		same(t, of.page+", "+of.head, of.code, listed)
	}
}

// oneWord matches a cell that consists of a name without backticks.
var oneWord = regexp.MustCompile(`^\w+$`)

// same fails the test if one of two lists has a name that the other one lacks.
func same(t testing.TB, where string, inCode, onPage []string) {
	t.Helper()
	set := func(names []string) []string {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
		return slices.Compact(slices.Sorted(slices.Values(names)))
	}
	expect.Equal(t, diff.Diff(set(inCode), set(onPage)), "", where, "-code +page")
}

// literals returns the texts in the declarations of a file whose names end with one of the endings.
func literals(t testing.TB, path string, endings ...string) []string {
	t.Helper()
	var all []string
	ast.Inspect(syntax(t, path), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(spec.Names[0].Name, ending) }) {
			return true
		}
		ast.Inspect(spec, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if s, ok := text(e); ok {
					all = append(all, s)
				}
			}
			return true
		})
		return false
	})
	return all
}

// submatches returns the first submatches of a regular expression in a text.
func submatches(t testing.TB, expression, text string) []string {
	t.Helper()
	var all []string
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// folder returns the names of the files in a folder.
func folder(t testing.TB, path string) []string {
	t.Helper()
	var all []string
	for _, entry := range expect.Result(os.ReadDir(filepath.Join(root, path))).Value(t) {
		all = append(all, entry.Name())
	}
	return all
}
