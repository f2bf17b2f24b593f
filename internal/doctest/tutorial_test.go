package doctest

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/gobuild"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
)

// block returns the page's first block of code in a language. It removes the indentation of a block in a list.
func block(t testing.TB, page, language string) string {
	t.Helper()
	m := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$").FindStringSubmatch(read(t, page))
	expect.MustTrue(t, m != nil, page, "has no block of", language)
	return regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")
}

const tutorial = "docs/tutorial.md"

// The server with the tutorial's configuration serves the dashboard, at the address that the tutorial gives.
func TestTutorialDashboard(t *testing.T) {
	dir, env := t.TempDir(), environment(t)
	file := filepath.Join(dir, "tdf.cfg")
	write(t, file, block(t, tutorial, "ini"))
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

// environment returns variables with which components use the Redis of the tests, in a namespace of their own.
func environment(t testing.TB) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(redistest.Shared(t))
	expect.NoError(t, err)
	return append(os.Environ(), "TDF_CFG_REDIS_PASSWORD=None", "TDF_CFG_REDIS_HOST="+host, "TDF_CFG_REDIS_PORT="+port,
		"TDF_CFG_TDF_NAMESPACE="+redistest.Namespace(t))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}
