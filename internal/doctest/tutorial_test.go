package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

// block returns the page's first block of code in a language. It removes the indentation of a block in a list.
func block(t testing.TB, page, language string) string {
	t.Helper()
	m := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$").FindStringSubmatch(read(t, page))
	expect.MustTrue(t, m != nil, page, "has no block of", language)
	return regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")
}

const tutorial = "docs/tutorial.md"

// The tutorial's configuration is valid, and serves the dashboard at the address that the tutorial gives.
func TestTutorialDashboard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tdf.cfg")
	expect.NoError(t, os.WriteFile(file, []byte(block(t, tutorial, "ini")), 0o600))
	tool := expect.Result(config.LoadTool(file, os.Environ())).Value(t)
	expect.Contains(t, read(t, tutorial), "<http://"+tool.HTTP.Listen+"/ui>")
}
