package doctest

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/gobuild"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/trial"
)

// block returns the page's first block of code in a language. It removes the indentation of a block in a list.
func block(t testing.TB, page, language string) string {
	t.Helper()
	m := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$").FindStringSubmatch(read(t, page))
	expect.MustTrue(t, m != nil, page, "has no block of", language)
	return regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")
}

const tutorial = "docs/tutorial.md"

// The tutorial's manager is short, and prints the lines that the tutorial shows. The order of the lines may differ.
func TestTutorial(t *testing.T) {
	source := block(t, tutorial, "go")
	n := strings.Count(source, "\n")
	expect.True(t, n < 40, "the manager has", n, "lines, want fewer than 40")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), source)
	write(t, filepath.Join(dir, "squares", "run.sh"), block(t, tutorial, "sh"))
	write(t, filepath.Join(dir, "tdf.cfg"), block(t, tutorial, "ini"))
	manager := filepath.Join(dir, "manager")
	expect.NoError(t, gobuild.Build(root, manager, filepath.Join(dir, "main.go"))) // the manager imports the project's module
	run := exec.CommandContext(t.Context(), manager)
	run.Dir, run.Env = dir, serving(t)
	out := expect.Result(run.Output()).Value(t)
	got, want := string(out), block(t, tutorial, "text")
	expect.True(t, slices.Equal(sortedLines(got), sortedLines(want)), "the manager printed", got, "want", want)
	checkDashboard(t, dir, run.Env)
}

// checkDashboard checks that the server with the tutorial's configuration serves the dashboard, at the address that the
// tutorial gives.
func checkDashboard(t *testing.T, dir string, env []string) {
	t.Helper()
	file := filepath.Join(dir, "tdf.cfg")
	tool := expect.Result(config.LoadTool(file, env)).Value(t)
	expect.Contains(t, read(t, tutorial), "<http://"+tool.HTTP.Listen+"/ui>")
	command := filepath.Join(dir, "tdf-server")
	expect.NoError(t, gobuild.Build(root, command, "./cmd/tdf-server"))
	log := &testlog.Buffer{}
	server := exec.CommandContext(t.Context(), command, "server", file)
	server.Env, server.Stderr = append(env, "TDF_CFG_HTTP_LISTEN=127.0.0.1:0"), log
	expect.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Wait() }) // the end of the context kills it
	var address string
	expect.Eventually(t, "the server gives its address", func() bool {
		address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(log.String())
		return address != ""
	}, func() any { return log.String() })
	answer := expect.Result(http.Get(address + "/ui")).Value(t)
	defer answer.Body.Close()
	page := expect.Result(io.ReadAll(answer.Body)).Value(t)
	expect.Contains(t, string(page), "token")
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

// serving starts a server and a worker, and returns the environment with which a manager uses them.
func serving(t testing.TB) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(redistest.Shared(t))
	expect.NoError(t, err)
	namespace := redistest.Namespace(t)
	t.Setenv("LC_ALL", "C") // for English error messages of expr
	t.Setenv("TDF_CFG_REDIS_PASSWORD", "None")
	t.Setenv("TDF_CFG_REDIS_HOST", host)
	t.Setenv("TDF_CFG_REDIS_PORT", port)
	cfg := expect.Result(config.DefaultManager(namespace)).Value(t)
	tdf := expect.Result(trial.StartOn(context.WithoutCancel(t.Context()), cfg.Redis, namespace, 1, t.Output())).Value(t)
	t.Cleanup(func() {
		expect.NoError(t, tdf.Stop())
	})
	return append(os.Environ(), "TDF_CFG_TDF_NAMESPACE="+namespace)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}
