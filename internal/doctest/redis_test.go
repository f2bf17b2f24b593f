package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

const redisPage = "docs/redis.md"

func syntax(t testing.TB, path string) *ast.File {
	t.Helper()
	return expect.Result(parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)).Value(t)
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// The page lists exactly the keys that the code builds.
func TestKeys(t *testing.T) {
	var built []string
	for _, list := range rules.Lists {
		built = append(built, string(list))
	}
	ast.Inspect(syntax(t, "redisstate/keys/keys.go"), func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Key" {
				built = append(built, beginning(call.Args[0])...)
			}
		}
		return true
	})
	var listed []string
	for _, key := range append(first(rows(t, redisPage, "## The lists")), first(rows(t, redisPage, "## The other keys"))...) {
		name, ok := strings.CutPrefix(key, "$ns:")
		expect.True(t, ok, key, "does not begin with the namespace")
		name, _, _ = strings.Cut(name, "$")
		listed = append(listed, name)
	}
	same(t, redisPage+", keys", built, listed)
}

// beginning returns the constant part of a key, such as "calls:" for the expression "calls:"+boot.
func beginning(e ast.Expr) []string {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		e = sum.X
	}
	if s, ok := text(e); ok {
		return []string{s}
	}
	return nil // the key is the name of a list, as in string(s); TestKeys takes these names from task.Lists
}

// constants returns the values of constants of a file that are literals. The name of a constant must begin with one of the
// prefixes, or its type must be equal to one of them.
func constants(t testing.TB, path string, prefixes ...string) []string {
	values := map[string]bool{}
	ast.Inspect(syntax(t, path), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		kind, _ := spec.Type.(*ast.Ident)
		for i, name := range spec.Names {
			of := func(b string) bool { return strings.HasPrefix(name.Name, b) || kind != nil && kind.Name == b }
			if i < len(spec.Values) && slices.ContainsFunc(prefixes, of) {
				if s, ok := text(spec.Values[i]); ok {
					values[s] = true
				} else if lit, ok := spec.Values[i].(*ast.BasicLit); ok {
					values[lit.Value] = true
				}
			}
		}
		return true
	})
	expect.True(t, len(values) != 0, path, "has no constants", prefixes)
	return slices.Collect(maps.Keys(values))
}

// The page lists exactly the properties that the code names.
func TestProperties(t *testing.T) {
	properties := append(constants(t, "internal/task/parse.go", "field", "Field"), constants(t, "internal/task/task.go", "Counter")...)
	for _, p := range task.PropertyTable {
		properties = append(properties, p.Name)
	}
	ofRound := append(constants(t, "internal/task/parse.go", "Round", "round"), "$state")
	var listed, listedOfRound []string
	for _, name := range first(rows(t, redisPage, "## A task")) {
		if of, ok := strings.CutPrefix(name, "$round:"); ok {
			listedOfRound = append(listedOfRound, of)
		} else {
			listed = append(listed, name)
		}
	}
	same(t, redisPage+", properties", properties, listed)
	same(t, redisPage+", properties of a round", ofRound, listedOfRound)
}

// The page shows the defaults of a new task.
func TestDefaults(t *testing.T) {
	defaults := map[string]string{"max_losses": strconv.Itoa(task.Defaults("", "", "").MaxLosses), "fail_on": string(task.FailOnStderr)}
	d := task.Defaults("", "", "")
	for _, f := range d.OpenFields("") {
		defaults[f.Name] = f.Value
	}
	for _, row := range rows(t, redisPage, "## A task") {
		value, known := defaults[names(row[0])[0]]
		listed := strings.Replace(row[2], "empty", "", 1)
		if known && listed != value {
			expect.Equal(t, listed, "required", value)
		}
	}
}
