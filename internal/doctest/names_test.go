package doctest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Tables of pages name methods and functions that exist.
func TestNamesInGo(t *testing.T) {
	for _, of := range []struct {
		page, head string
		column     int
		code       []string
	}{
		{"docs/manager.md", "| call | does |", 0, methods("manager", "Manager")},
		{"docs/manager.md", "| method | the function runs |", 0, methods("manager", "Pipeline")},
		{"docs/periodic.md", "| command | Go | does |", 1, methods("manager", "Manager")},
	} {
		for _, row := range below(t, of.page, of.head) {
			for _, name := range names(row[of.column]) {
				name, _, _ = strings.Cut(name, "(")
				expect.True(t, slices.Contains(of.code, name), of.page, "names", name)
			}
		}
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
