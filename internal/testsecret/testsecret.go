// Package testsecret makes secrets for tests, as a worker reads them.
package testsecret

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// Of returns secrets with the given values.
func Of(t testing.TB, values ...string) *secrets.Secrets {
	t.Helper()
	var lines strings.Builder
	for i, value := range values {
		fmt.Fprintf(&lines, "S%d=%s\n", i, value)
	}
	path := filepath.Join(t.TempDir(), "env")
	expect.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o600))
	f, err := os.Open(path)
	expect.NoError(t, err)
	defer f.Close()
	s, err := secrets.Read(f)
	expect.NoError(t, err)
	return s
}
