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

// docs/redis.md lists the properties of a worker, and docs/install.md settings that the unit of a worker has.
func TestWorkersOfPages(t *testing.T) {
	said := submatches(t, `h\["(\w+)"\]`, read(t, "redisstate/presence/workers.go"))
	said = append(said, "remember", "giving_up") // only scripts read these
	same(t, "docs/redis.md, a worker", said, first(below(t, "docs/redis.md", "| property | meaning |")))
	unit := read(t, "deploy/tdf-worker@.service")
	for _, setting := range first(below(t, "docs/install.md", "| setting | why | when to change it |")) {
		if setting != "TasksMax" {
			expect.Contains(t, unit, setting)
		}
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
