package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// An error names the file or the environment variable that contains the invalid value.
func TestErrorsNameTheSource(t *testing.T) {
	_, port, err := net.SplitHostPort(redistest.Shared(t))
	expect.NoError(t, err)
	base := "[tdf]\nnamespace=" + redistest.Namespace(t) + "\n[redis]\nhost=127.0.0.1\nport=" + port + "\n[worker]\n"
	for key, value := range map[string]string{"directory": "/no/such/directory", "collect": "rsync:/data/..", "user": "no such user"} {
		variable := "TDF_CFG_WORKER_" + strings.ToUpper(key)
		file := filepath.Join(t.TempDir(), "t.cfg")
		for where, c := range map[string]struct{ text, environment, want string }{
			"file":        {base + key + "=" + value, "", file + ": [worker] " + key + ": "},
			"environment": {base, value, variable + ": "},
			"both":        {base + key + "=" + value, value, variable + ": "},
		} {
			t.Run(key+"/"+where, func(t *testing.T) {
				if c.environment != "" {
					t.Setenv(variable, c.environment)
				}
				expect.NoError(t, os.WriteFile(file, []byte(c.text), 0o644))
				var stdout, stderr bytes.Buffer
				status := run(t.Context(), t.Context(), []string{"w", file}, &stdout, &stderr)
				expect.Equal(t, status, 2, c.want)
				expect.Contains(t, stderr.String(), "tdf-worker: "+c.want, "status", status, "want an error of", c.want)
			})
		}
	}
}
