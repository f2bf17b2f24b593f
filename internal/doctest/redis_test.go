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

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf"
)

const redisPage = "docs/redis.md"

func syntax(t testing.TB, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
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

// compare reports what is in one of the sets only.
func compare(t testing.TB, what string, inCode, onPage []string) {
	t.Helper()
	set := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	if diff := cmp.Diff(set(inCode), set(onPage)); diff != "" {
		t.Errorf("%s, code against %s (-code +page):\n%s", what, redisPage, diff)
	}
}

// Every key that the code builds is on the page, and every key on the page is built.
func TestKeys(t *testing.T) {
	var built []string
	for _, list := range tdf.Lists {
		built = append(built, string(list))
	}
	ast.Inspect(syntax(t, "redisstate/keys.go"), func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "key" {
				built = append(built, beginning(call.Args[0])...)
			}
		}
		return true
	})
	var listed []string
	for _, key := range append(first(rows(t, redisPage, "## The lists")), first(rows(t, redisPage, "## The other keys"))...) {
		name, ok := strings.CutPrefix(key, "$ns:")
		if !ok {
			t.Errorf("%s does not begin with the namespace", key)
		}
		name, _, _ = strings.Cut(name, "$")
		listed = append(listed, name)
	}
	compare(t, "keys", built, listed)
}

// beginning returns the constant part of a key: "calls:" of "calls:"+boot.
func beginning(e ast.Expr) []string {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		e = sum.X
	}
	if s, ok := text(e); ok {
		return []string{s}
	}
	return nil // the list of a state
}

// constants returns the string constants of a file whose names begin so, or are of that type.
func constants(t testing.TB, path string, begins ...string) []string {
	values := map[string]bool{}
	ast.Inspect(syntax(t, path), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		kind, _ := spec.Type.(*ast.Ident)
		for i, name := range spec.Names {
			of := func(b string) bool { return strings.HasPrefix(name.Name, b) || kind != nil && kind.Name == b }
			if i < len(spec.Values) && slices.ContainsFunc(begins, of) {
				if s, ok := text(spec.Values[i]); ok {
					values[s] = true
				}
			}
		}
		return true
	})
	if len(values) == 0 {
		t.Errorf("%s has no constants %v", path, begins)
	}
	return slices.Collect(maps.Keys(values))
}

// Every property that the code names is on the page, and the other way round.
func TestProperties(t *testing.T) {
	properties := append(constants(t, "parse.go", "field", "Field"), constants(t, "transition.go", "Counter")...)
	ofRound := append(constants(t, "parse.go", "Round", "round"), "$state")
	var listed, listedOfRound []string
	for _, name := range first(rows(t, redisPage, "## A task")) {
		if of, ok := strings.CutPrefix(name, "$round:"); ok {
			listedOfRound = append(listedOfRound, of)
		} else {
			listed = append(listed, name)
		}
	}
	compare(t, "properties", properties, listed)
	compare(t, "properties of a round", ofRound, listedOfRound)
}

// A task that is opened by default has the defaults that the page tells.
func TestDefaults(t *testing.T) {
	defaults := map[string]string{"max_losses": strconv.Itoa(tdf.Defaults("", "", "").MaxLosses), "fail_on": string(tdf.FailOnStderr)}
	d := tdf.Defaults("", "", "")
	for _, f := range d.OpenFields("") {
		defaults[f.Name] = f.Value
	}
	for _, row := range rows(t, redisPage, "## A task") {
		value, known := defaults[names(row[0])[0]]
		if told := strings.Replace(row[2], "empty", "", 1); known && told != value && told != "required" {
			t.Errorf("%s is %q by default, and the page says %q", row[0], value, row[2])
		}
	}
}
