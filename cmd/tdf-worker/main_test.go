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
	for key, value := range map[string]string{"directory": "/no/such/directory", "user": "no such user"} {
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

// A time limit that a stopping worker would need as a whole is refused, and the error names the flag.
func TestTheTimeLimitMustSuffice(t *testing.T) {
	_, port, err := net.SplitHostPort(redistest.Shared(t))
	expect.NoError(t, err)
	file := filepath.Join(t.TempDir(), "t.cfg")
	text := "[tdf]\nnamespace=" + redistest.Namespace(t) + "\n[redis]\nhost=127.0.0.1\nport=" + port + "\n"
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	for want, args := range map[string][]string{
		"--time-limit: 27 s is too short; expected more than grace + kill_grace + 12 s = 27 s": {"--time-limit", "27s"},
		`invalid value "soon" for flag -idle-timeout: want seconds`:                            {"--idle-timeout", "soon"},
		`--queues: [worker] queues: "a:x" is not names of queues`:                              {"--queues", "a:x"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), t.Context(), append(args, "w", file), &stdout, &stderr)
		expect.Equal(t, status, 2, want)
		expect.Contains(t, stderr.String(), "tdf-worker: "+want, "status", status)
	}
}

// A worker with an idle timeout ends by itself, with status 0.
func TestAnIdleWorkerEnds(t *testing.T) {
	_, port, err := net.SplitHostPort(redistest.Shared(t))
	expect.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "t.cfg")
	text := "[tdf]\nnamespace=" + redistest.Namespace(t) + "\n[redis]\nhost=127.0.0.1\nport=" + port + "\n[worker]\ndirectory=" + dir + "\n"
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), t.Context(), []string{"--idle-timeout", "10ms", "--time-limit", "7d", "w", file}, &stdout, &stderr)
	expect.Equal(t, status, 0, stderr.String())
	expect.Contains(t, stderr.String(), "no task for the idle timeout")
}
