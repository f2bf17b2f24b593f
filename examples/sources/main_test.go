package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/examples/local"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

func checkRun(t *testing.T, args ...string) {
	t.Helper()
	var out, err testlog.Buffer
	if status := run(t.Context(), args, &out, &err); status != 0 || !strings.HasSuffix(out.String(), "\nall went as expected\n") {
		t.Errorf("exit status %d, stdout:\n%s\nstderr:\n%s", status, out.String(), err.String())
	}
	if n := strings.Count(out.String(), "\nok "); n != 2*(4*len(endings)+3)+12 {
		t.Errorf("%d tasks went as expected:\n%s", n, out.String())
	}
}

func TestEmbedded(t *testing.T) { checkRun(t) }

// Where rsync is missing, the tasks that need it are expected to say so.
func TestWithoutRsync(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"sh"} { // all that run.sh needs
		if err := os.Symlink("/bin/"+name, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	checkRun(t)
}

func TestOnRedis(t *testing.T) {
	host, port, err := net.SplitHostPort(redistest.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	namespace := redistest.Namespace(t)
	file := filepath.Join(t.TempDir(), "manager.cfg")
	text := fmt.Sprintf("[redis]\nhost=%s\nport=%s\n[tdf]\nnamespace=%s\n", host, port, namespace)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadManager(file)
	if err != nil {
		t.Fatal(err)
	}
	tdf, err := local.StartOn(t.Context(), cfg.Redis, namespace, 2, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer tdf.Stop()
	checkRun(t, "-config", file)
	checkRun(t, "-config", file) // what the first run left is no hindrance
}

func TestWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-unknown":           "unknown",
		"something":          `"something" is no option`,
		"-config no/one.cfg": "no/one.cfg",
	} {
		var out, err testlog.Buffer
		if status := run(t.Context(), strings.Fields(args), &out, &err); status != 2 || !strings.Contains(err.String(), want) {
			t.Errorf("%s: exit status %d, stderr %q", args, status, err.String())
		}
	}
}

// What is not as expected is told.
func TestNotAsExpected(t *testing.T) {
	sum := strings.Repeat("a", 64)
	printed := "run.sh got: one and two\n"
	for name, c := range map[string]struct {
		want                             string
		outcome, sha256, output, failure string
		as                               bool
	}{
		"succeeded":          {"", "succeeded", sum, printed, "", true},
		"other output":       {"", "succeeded", sum, "something\n", "", false},
		"not fetched":        {"", "succeeded", "", printed, "", false},
		"failed":             {"", "failed", sum, "", "404", false},
		"failed as it must":  {"404", "failed", "", "", "it says 404", true},
		"another error":      {"404", "failed", "", "", "it says 500", false},
		"should have failed": {"404", "succeeded", sum, printed, "", false},
	} {
		r := row{try: try{want: c.want}}
		if r.conclude(c.outcome, c.sha256, c.output, c.failure); r.as != c.as {
			t.Errorf("%s: as expected: %v", name, r.as)
		}
	}
	rows, before := []row{{as: true, sha256: sum}}, []row{{as: true, sha256: "b"}}
	compare(rows, before)
	var out bytes.Buffer
	if wrong := printRows(&out, "title", rows); wrong != 1 || !strings.Contains(out.String(), "NOT AS EXPECTED") {
		t.Errorf("%d wrong: %s", wrong, out.String())
	}
	if wrong := printRequests(&out, 3); wrong != 1 {
		t.Errorf("three requests: %d wrong", wrong)
	}
}

func TestConfigurationFiles(t *testing.T) {
	if _, err := config.LoadServer("cfg/server.cfg"); err != nil {
		t.Error(err)
	}
	if _, err := config.LoadWorker("cfg/worker.cfg"); err != nil {
		t.Error(err)
	}
	if _, err := config.LoadManager("cfg/manager.cfg"); err != nil {
		t.Error(err)
	}
}
