package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// clearEnvironment unsets TDF's environment variables until the test ends.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, envPrefix) {
			t.Setenv(name, "")
			expect.NoError(t, os.Unsetenv(name))
		}
	}
}

const source = "some.cfg"

// mustLoad loads the text of a file with the given environment. It ignores the environment of the process.
func mustLoad(t fataler, file string, environ ...string) *settings {
	t.Helper()
	s, err := load(source, []byte(file), environ)
	if err != nil {
		t.Fatalf("loading %q with %q: %v", file, environ, err)
	}
	return s
}

// fataler is implemented by *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// wantError checks that err is an *Error with exactly the text want.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	expect.MustTrue(t, err != nil, "error  got", err, "want", want)
	expect.Equal(t, err.Error(), want)
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("error is a %T, not an *Error", err)
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tdf.cfg")
	expect.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// fileOf returns the text of a file with the given key and with a namespace.
func fileOf(k key, value string) string {
	text := "[tdf]\nnamespace=N\n"
	switch {
	case k.name == "namespace":
		text = "[tdf]\n"
	case k.section != "tdf":
		text += "[" + k.section + "]\n"
	}
	return text + k.name + "=" + value + "\n"
}

// neededVariables returns the environment variables without which the key k cannot be set.
func neededVariables(k key) []string {
	return map[string][]string{
		"TDF_CFG_REDIS_TLS_CA": {"TDF_CFG_REDIS_TLS=True"}, "TDF_CFG_REDIS_TLS_SERVER_NAME": {"TDF_CFG_REDIS_TLS=True"},
		"TDF_CFG_REDIS_TLS_CERT": {"TDF_CFG_REDIS_TLS=True", "TDF_CFG_REDIS_TLS_KEY=k"},
		"TDF_CFG_REDIS_TLS_KEY":  {"TDF_CFG_REDIS_TLS=True", "TDF_CFG_REDIS_TLS_CERT=c"},
		"TDF_CFG_REDIS_CLUSTER":  {"TDF_CFG_REDIS_DB=0"}, "TDF_CFG_REDIS_SENTINELS": {"TDF_CFG_REDIS_DB=0"},
		"TDF_CFG_HTTP_TLS_CERT": {"TDF_CFG_HTTP_TLS_KEY=k"}, "TDF_CFG_HTTP_TLS_KEY": {"TDF_CFG_HTTP_TLS_CERT=c"},
		"TDF_CFG_HTTP_CLIENT_CA":             {"TDF_CFG_HTTP_TLS_CERT=c", "TDF_CFG_HTTP_TLS_KEY=k"},
		"TDF_CFG_NOTIFY_WEBHOOK_SECRET_FILE": {"TDF_CFG_NOTIFY_WEBHOOK=https://a"},
		"TDF_CFG_NOTIFY_MAIL_TO":             {"TDF_CFG_NOTIFY_MAIL_FROM=a@b", "TDF_CFG_NOTIFY_MAIL_SERVER=c:25"},
		"TDF_CFG_NOTIFY_MAIL_SERVER":         {"TDF_CFG_NOTIFY_MAIL_PASSWORD_FILE=p"},
		"TDF_CFG_NOTIFY_MAIL_PASSWORD_FILE":  {"TDF_CFG_NOTIFY_MAIL_SERVER=u@c:25"},
	}[k.env()]
}
