package doctest

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// docs/operations.md lists the settings of a namespace with their defaults, in the order of the code.
func TestSettings(t *testing.T) {
	heading := "## Settings of a namespace"
	listed := rows(t, "docs/operations.md", heading)
	expect.Equal(t, first(listed), tdf.SettingNames, "docs/operations.md", heading)
	for _, row := range listed {
		name := names(row[0])[0]
		expect.Equal(t, row[1], "`"+tdf.DefaultSettings().Value(name)+"`", "docs/operations.md", heading, name)
	}
}

// docs/programs.md has the defaults of docs/configuration.md, and lists the keys that limit programs.
func TestKeysOfPrograms(t *testing.T) {
	for _, row := range below(t, "docs/programs.md", "| key | default | bounds |") {
		listed, _, _ := strings.Cut(row[1], " ")
		expect.Equal(t, "`"+listed+"`", keyOf(t, "[worker]", names(row[0])[0])[1], row[0])
	}
	limits := first(below(t, "docs/programs.md", "| key | with a cgroup | without a cgroup |"))
	require := strings.NewReplacer("any of subreaper, cgroup, ", "", ", separated by blanks or commas", "")
	same(t, "limits on a program", strings.Split(require.Replace(keyOf(t, "[worker]", "require")[2]), ", "), limits)
}

// docs/configuration.md lists the names that no part of a namespace may have.
func TestPartsOfNamespaces(t *testing.T) {
	_, listed, _ := strings.Cut(read(t, "docs/configuration.md"), "TDF uses the names ")
	listed, _, _ = strings.Cut(listed, "\n\n")
	same(t, "docs/configuration.md, names", literals(t, "settings.go", "namespaceParts"), names(listed))
}

// docs/http.md lists the types of events.
func TestTypesOfEvents(t *testing.T) {
	_, listed, _ := strings.Cut(read(t, "docs/http.md"), "the types of events:\n")
	listed, _, _ = strings.Cut(listed, "To continue after")
	same(t, "docs/http.md, events", literals(t, "web/events.go", "Events"), submatches(t, "(?m)^- `(\\w+)`: ", listed))
}

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

// docs/dashboard.md lists the pages of the dashboard with their addresses.
func TestPagesOfDashboard(t *testing.T) {
	listed := below(t, "docs/dashboard.md", "| page | address below `/ui` | shows |")
	var titles, paths []string
	for _, row := range listed {
		titles = append(titles, strings.TrimPrefix(strings.TrimPrefix(row[0], "A task"), "A campaign"))
		paths = append(paths, names(row[1])...)
		paths = append(paths, submatches(t, "`(/(?:[a-z-]+|tasks/7/\\w+))`", row[2])...)
	}
	var wantTitles, wantPaths []string
	example := strings.NewReplacer("{id}", "7", "{name}", "grid")
	for page := range slices.Chunk(literals(t, "web/dashboard/pages.go", "pages"), 3) {
		wantTitles = append(wantTitles, page[2])
		if page[0] != "/" && page[0] != "/tasks/confirm" { // the overview, and a question
			wantPaths = append(wantPaths, example.Replace(page[0]))
		}
	}
	same(t, "docs/dashboard.md, pages", wantTitles, titles)
	same(t, "docs/dashboard.md, addresses", wantPaths, paths)
}

// docs/periodic.md names methods of a manager, and docs/programs.md functions of package worker.
func TestNamesInGo(t *testing.T) {
	known := methods("manager", "Manager")
	for _, row := range below(t, "docs/periodic.md", "| command | Go | does |") {
		expect.True(t, slices.Contains(known, names(row[1])[0]), "docs/periodic.md names", row[1])
	}
	for _, row := range below(t, "docs/programs.md", "| the handler | the round |") {
		for _, name := range submatches(t, `worker\.(\w+)`, row[0]) {
			expect.True(t, load("worker").Scope().Lookup(name) != nil, "docs/programs.md names", name)
		}
	}
}

// The reasons for a failed fetch in docs/programs.md are texts of the code. ssh itself writes the last one.
func TestReasonsOfFetches(t *testing.T) {
	var source strings.Builder
	for _, file := range files(t, ".go") {
		if slices.Contains([]string{"fetch", "worker"}, top(file)) && !strings.HasSuffix(file, "_test.go") {
			source.WriteString(read(t, file))
		}
	}
	reasons := first(below(t, "docs/programs.md", "| reason | remedy |"))
	for _, reason := range slices.DeleteFunc(reasons, func(s string) bool { return s == "Host key verification failed" }) {
		for part := range strings.SplitSeq(reason, "…") {
			expect.Contains(t, source.String(), part, "docs/programs.md names", reason)
		}
	}
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
		same(t, page+", variables", set, listed)
		expect.Compare(t, len(set), ">=", 3)
	}
}

// docs/python.md has the defaults of the Python package.
func TestDefaultsInPython(t *testing.T) {
	page := strings.Join(strings.Fields(read(t, "docs/python.md")), " ")
	for sentence, of := range map[string]struct{ file, value string }{
		"It needs only Python $ or later.":               {"pyproject.toml", `requires-python = ">=(.*)"`},
		"Later calls are repeated for $ s (`patience`)":  {"tdf/client.py", `patience: float = (\d+)\.0`},
		"its tasks run again when the lease of $ s ends": {"tdf/loop.py", `lease: float = (\d+)\.0`},
	} {
		values := submatches(t, of.value, read(t, "python/"+of.file))
		expect.MustLen(t, values, 1, of.value)
		expect.Contains(t, page, strings.Replace(sentence, "$", values[0], 1), "docs/python.md")
	}
}

// docs/security.md says what the token of each role can do.
func TestTrustInRoles(t *testing.T) {
	listed := below(t, "docs/security.md", "| who | can | so |")
	for _, role := range constants(t, "access/role.go", "Role") {
		isOf := func(row []string) bool {
			return strings.HasPrefix(row[0], "a token of a") && strings.HasSuffix(row[0], " "+role)
		}
		expect.True(t, slices.ContainsFunc(listed, isOf), "docs/security.md does not list the role", role)
	}
}
