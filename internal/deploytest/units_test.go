// Package deploytest tests scripts/dist and deploy/ (docs/install.md). It contains only tests.
package deploytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

var must = expect.NoError

const root = "../.."

func read(t testing.TB, name string) string {
	t.Helper()
	text := expect.Result(os.ReadFile(name)).Value(t)
	return string(text)
}

func write(t testing.TB, name string, mode os.FileMode, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), mode))
	must(t, os.Chmod(name, mode))
}

// setting returns the values of a unit's setting.
func setting(t testing.TB, unit, name string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(read(t, filepath.Join(root, "deploy", unit))) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			all = append(all, value)
		}
	}
	return all
}

// systemd waits long enough for a worker that stops. The worker first lets programs finish. It then ends the programs
// that still run, and reports the results.
func TestWorkerHasTimeToStop(t *testing.T) {
	t.Setenv("TDF_CFG_TDF_NAMESPACE", "x")
	cfg := expect.Result(config.LoadWorker(filepath.Join(root, "configs", "worker.cfg"))).Value(t)
	value := setting(t, "tdf-worker@.service", "TimeoutStopSec")
	expect.MustLen(t, value, 1, "TimeoutStopSec")
	stop := expect.Result(time.ParseDuration(value[0] + "s")).Value(t)
	needed := cfg.Grace + cfg.KillGrace + 10*time.Second
	expect.True(t, stop > needed, "TimeoutStopSec is", stop, "want more than", needed)
}

// The units and the script install-host use the same paths.
func TestUnitsAgreeWithTheInstaller(t *testing.T) {
	script := read(t, filepath.Join(root, "deploy", "install-host"))
	words := strings.Fields(strings.Join(setting(t, "tdf-worker@.service", "ExecStart"), " "))
	expect.MustLen(t, words, 3)
	expect.Contains(t, script, "binary=$root"+words[0]+"\n")
	expect.Contains(t, script, "etc=$root"+filepath.Dir(words[2])+"\n")
	expect.Contains(t, script, `"$etc/`+filepath.Base(words[2])+`" 600 tdf:tdf`)
	home := setting(t, "tdf-worker@.service", "WorkingDirectory")
	expect.MustLen(t, home, 1)
	expect.Contains(t, script, "home="+home[0]+"\n")
}

// The unit has the settings that workers need. systemd lets a worker end its programs and make cgroups. It keeps the
// worker when a program runs out of memory, and it always restarts the worker.
func TestSettingsOfWorkers(t *testing.T) {
	for name, want := range map[string]string{
		"KillMode": "mixed", "Delegate": "yes", "OOMPolicy": "continue", "Restart": "always", "StartLimitIntervalSec": "0",
	} {
		expect.Equal(t, setting(t, "tdf-worker@.service", name), []string{want}, name, want)
	}
	for _, breaks := range []string{"ProtectControlGroups", "SystemCallFilter", "PrivateDevices", "MemoryDenyWriteExecute"} {
		expect.Len(t, setting(t, "tdf-worker@.service", breaks), 0, breaks, "= … breaks programs")
	}
}
