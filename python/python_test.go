// Package python tests the Python package tdf.
package python

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/gobuild"
)

// The tests of the package pass against a tdf up of this tree. Debian's pytest-3 and mypy run with Debian's python3. They need about
// 25 s of CPU time: workers in Python start an interpreter for each slot, and some tests their own tdf up.
func TestPackage(t *testing.T) {
	noteSources(t)
	bin := t.TempDir()
	expect.NoError(t, gobuild.Build("..", filepath.Join(bin, "tdf"), "./cmd/tdf"))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	run(t, "pytest-3", "-q", "-p", "no:cacheprovider")
}

// The package and a script that uses it are typed, for Python 3.9.
func TestTypes(t *testing.T) {
	noteSources(t)
	run(t, "mypy", "--cache-dir="+t.TempDir())
}

func run(t *testing.T, command string, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput()
	expect.NoError(t, err, string(output))
}

// noteSources reads what the tests depend on, so that Go's test cache runs them again after a change.
func noteSources(t *testing.T) {
	t.Helper()
	expect.Result(os.ReadFile("../docs/python.md")).OK(t)
	expect.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (filepath.Ext(path) == ".py" || filepath.Ext(path) == ".toml") {
			_, err = os.ReadFile(path)
		}
		return err
	}))
}
