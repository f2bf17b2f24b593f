package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

func toolFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tdf.cfg")
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// An override wins over the environment, the environment over the file, and the file over the default.
func TestToolPrecedence(t *testing.T) {
	path := toolFile(t, "[tdf]\nnamespace=file\n[redis]\nport=1001\ndb=1\n[worker]\nlease=11\n")
	environ := []string{"TDF_CFG_REDIS_PORT=1002", "TDF_CFG_TDF_NAMESPACE=environment"}
	tool := expect.Result(LoadTool(path, environ, Override{"tdf", "namespace", "flag", "--namespace"}, Override{"worker", "lease", "12", "--set"}, Override{"worker", "lease", "13", "--set"})).Value(t)
	for _, redis := range []Redis{tool.Manager.Redis, tool.Server.Redis, tool.Worker.Redis} {
		expect.Equal(t, redis.Host, "localhost")
		expect.Equal(t, redis.Port, 1002)
		expect.Equal(t, redis.DB, 1)
	}
	for _, namespace := range []string{tool.Manager.Namespace, tool.Server.Namespace, tool.Worker.Namespace} {
		expect.Equal(t, namespace, "flag", "namespace")
	}
	expect.Equal(t, tool.Worker.Lease, 13*time.Second, "lease")
}

// The namespace has a default only if there is no file. If there is a file, the namespace must be set in the file, in
// the environment or by an override.
func TestToolWithoutAFile(t *testing.T) {
	tool, err := LoadTool("", nil)
	expect.NoError(t, err)
	expect.Equal(t, tool.Manager.Namespace, DefaultNamespace)
	expect.Equal(t, tool.Worker.Namespace, DefaultNamespace)
	expect.Equal(t, tool.Manager.Redis.Addr(), "localhost:6379")
	tool, err = LoadTool("", nil, Override{"tdf", "namespace", "other", "--namespace"})
	expect.NoError(t, err)
	expect.Equal(t, tool.Server.Namespace, "other")
	path := toolFile(t, "[redis]\ndb=1\n")
	expect.Result(LoadTool(path, nil)).Fails(t, "[tdf] namespace: missing", "a file without a namespace")
	tool, err = LoadTool(path, nil, Override{"tdf", "namespace", "other", "--namespace"})
	expect.NoError(t, err)
	expect.Equal(t, tool.Manager.Namespace, "other")
	expect.Equal(t, tool.Manager.Redis.DB, 1)
}

// With an embedded Redis, managers and workers connect to the loopback address.
func TestToolEmbedded(t *testing.T) {
	tool := expect.Result(LoadTool("", nil, Override{"redis", "host", "embedded", "--redis"}, Override{"redis", "port", "7000", "--redis"})).Value(t)
	expect.True(t, tool.Server.Redis.Embedded(), tool)
	expect.True(t, !tool.Manager.Redis.Embedded(), tool)
	expect.True(t, !tool.Worker.Redis.Embedded(), tool)
	for _, redis := range []Redis{tool.Server.Redis, tool.Manager.Redis, tool.Worker.Redis} {
		expect.Equal(t, redis.Addr(), "127.0.0.1:7000", "the address")
	}
}

// An error names the source of the invalid value.
func TestToolErrors(t *testing.T) {
	for want, override := range map[string]Override{
		"--set: [redis] port: \"x\" is not": {"redis", "port", "x", "--set"},
		"--set: [redis] nosuch: unknown":    {"redis", "nosuch", "x", "--set"},
		"--set: [nosuch] key: unknown":      {"nosuch", "key", "x", "--set"},
		"--namespace: [tdf] namespace: \"a": {"tdf", "namespace", "a b", "--namespace"},
	} {
		_, err := LoadTool("", nil, override)
		expect.MustTrue(t, errors.As(err, new(*Error)), want, err)
		expect.True(t, strings.HasPrefix(err.Error(), want), want, err)
	}
	if _, err := LoadTool(filepath.Join(t.TempDir(), "nosuch.cfg"), nil); !errors.As(err, new(*Error)) {
		t.Errorf("no file: %v", err)
	}
	if _, err := LoadTool("", nil, Override{"redis", "password", "secret\x00", "--set"}); err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("the error shows a password: %v", err)
	}
}

func TestToolIsSet(t *testing.T) {
	file := toolFile(t, "\ufeff[tdf]\nnamespace=n\n[task_defaults]\ntimeout=inf\n") // an editor may write a byte order mark
	environ := []string{"TDF_CFG_TASK_DEFAULTS_FAIL_ON=stderr"}
	tool := expect.Result(LoadTool(file, environ, Override{Section: "task_defaults", Name: "max_fails", Value: "0", Source: "--set"})).Value(t)
	for name, want := range map[string]bool{"timeout": true, "fail_on": true, "max_fails": true, "max_losses": false, "nothing": false} {
		expect.Equal(t, tool.IsSet("task_defaults", name), want, "IsSet", name, "=")
	}
}
