package doctest

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// docs/operations.md explains each warning and each error that the components log. It explains no other messages.
func TestLoggedMessagesAreExplained(t *testing.T) {
	logged := map[string]bool{} // maps a message to true if it is a warning or an error
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || slices.Contains([]string{"bench", "examples", "trial"}, top(file)) || helpsTests(filepath.Dir(file)) {
			continue
		}
		ast.Inspect(syntax(t, file), func(n ast.Node) bool {
			if level, message := logCall(n); message != "" {
				logged[message] = logged[message] || level == "Warn" || level == "Error"
			}
			return true
		})
	}
	var explained []string
	for _, row := range rows(t, "docs/operations.md", "## Logs") {
		explained = append(explained, names(row[0])...)
		explained = append(explained, names(row[2])...)
	}
	for message, serious := range logged {
		if serious {
			expect.True(t, slices.Contains(explained, message), "docs/operations.md does not explain", message)
		}
	}
	for _, row := range rows(t, "docs/operations.md", "## Logs") {
		for _, message := range names(row[0]) {
			_, ok := logged[message]
			expect.True(t, ok, "docs/operations.md explains", message, "but no component logs it")
		}
	}
}

func top(path string) string {
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	return first
}

// logCall returns the level and the message of a call such as log.Warn("message", …).
func logCall(n ast.Node) (level, message string) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", ""
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Info", "Warn", "Error"}, f.Sel.Name) {
		return "", ""
	}
	message, _ = text(call.Args[0])
	return f.Sel.Name, message
}
