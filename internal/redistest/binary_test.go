package redistest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestUnusableBinary(t *testing.T) {
	tests := map[string]struct {
		script string // the redis-server in PATH; "" if PATH contains none
		want   string
	}{
		"missing":   {"", "apt-get install redis-server"},
		"too old":   {"echo 'Redis server v=6.0.16 sha=00000000:0'", "7.0 or later is needed"},
		"not Redis": {"echo hello", `prints "hello`},
		"fails":     {"exit 3", "exit status 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if test.script != "" {
				script := []byte("#!/bin/sh\n" + test.script + "\n")
				must(t, os.WriteFile(filepath.Join(dir, "redis-server"), script, 0o755))
			}
			expect.Result(findBinary()).Fails(t, test.want)
		})
	}
}

func TestVersion(t *testing.T) {
	for _, printed := range []string{"Redis server v=7.0.15 sha=0", "Redis server v=8.2.1 sha=0", "Server v=10.0.0"} {
		must(t, checkVersion("redis-server", printed), printed)
	}
}
